import { chmodSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { dirname, join } from "node:path";
import { CommandError, exitCodes } from "./exit-codes.ts";

/**
 * What `svc login` remembers. Credentials are kept by base URL: one is never sent to a service it was not given for.
 */
export interface Config {
  /** The service that is called unless another one is named. */
  base_url?: string;
  /** Base URL -> API key or JWT. */
  credentials: Record<string, string>;
}

/** https://specifications.freedesktop.org/basedir-spec/latest/ */
export function configPath(env = process.env): string {
  const base = env.XDG_CONFIG_HOME?.startsWith("/") ? env.XDG_CONFIG_HOME : join(homedir(), ".config");
  return join(base, "svc", "config.json");
}

/** @throws CommandError when the file is there and cannot be used */
export function readConfig(path = configPath()): Config {
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return { credentials: {} };
    throw unusable(path, (error as Error).message);
  }
  try {
    const { base_url, credentials } = JSON.parse(text) as Partial<Config>;
    const isBase = base_url === undefined || typeof base_url === "string";
    const isTexts = Object.values(credentials ?? {}).every((value) => typeof value === "string");
    if (!isBase || !isTexts) throw new Error("it has other fields than svc writes");
    return { ...(base_url !== undefined && { base_url }), credentials: credentials ?? {} };
  } catch (error) {
    // The message of a JSON error quotes the text, which holds credentials.
    throw unusable(path, error instanceof SyntaxError ? "it is not JSON" : (error as Error).message);
  }
}

const unusable = (path: string, reason: string) =>
  new CommandError(exitCodes.failed, `${path} cannot be used: ${reason}.`, "Delete it and sign in again: svc login");

/** Whole or not at all, and for its owner alone from the first byte. */
export function writeConfig(config: Config, path = configPath()): void {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  const draft = `${path}.${process.pid}`;
  try {
    writeFileSync(draft, `${JSON.stringify(config, null, 2)}\n`, { mode: 0o600 });
    chmodSync(draft, 0o600);
    renameSync(draft, path);
  } catch (error) {
    rmSync(draft, { force: true });
    throw new CommandError(exitCodes.failed, `${path} cannot be written: ${(error as Error).message}`);
  }
}
