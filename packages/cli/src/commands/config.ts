import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { dirname, join } from "node:path";
import { CommandError, exitCodes } from "../terminal/exit-codes.ts";

/** What `svc login` stores. Credentials are stored per base URL, so that one is never sent to another service. */
export interface Config {
  /** The default service. */
  base_url?: string;
  /** Base URL -> API key or JWT. */
  credentials: Record<string, string>;
  /** Base URL -> id of the project that `svc projects use` has chosen. */
  projects?: Record<string, string>;
  /** Signs what `--forward` sends, so that a receiver on this machine is configured once. */
  forward_secret?: string;
}

/** https://specifications.freedesktop.org/basedir-spec/latest/ */
export function configPath(): string {
  const { XDG_CONFIG_HOME } = process.env;
  const base = XDG_CONFIG_HOME?.startsWith("/") ? XDG_CONFIG_HOME : join(homedir(), ".config");
  return join(base, "svc", "config.json");
}

/** @throws CommandError when the file exists and is not valid */
export function readConfig(): Config {
  const path = configPath();
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return { credentials: {} };
    throw unreadable(path, (error as Error).message);
  }
  try {
    const config = { credentials: {}, ...JSON.parse(text) };
    const { base_url = "", forward_secret = "", credentials, projects = {} } = config;
    const texts = [base_url, forward_secret, ...Object.values(credentials), ...Object.values(projects)];
    if (!texts.every((value) => typeof value === "string")) throw new Error("unexpected fields");
    return config;
  } catch (error) {
    // The message of a SyntaxError quotes the text, which contains credentials.
    throw unreadable(path, error instanceof SyntaxError ? "not valid JSON" : (error as Error).message);
  }
}

const unreadable = (path: string, reason: string) =>
  new CommandError(exitCodes.failed, `Could not read ${path}: ${reason}.`, "Delete it and sign in again: svc login");

/** Replaces the file atomically. Only its owner can read it, from the first byte on. */
export function writeConfig(config: Config): void {
  const path = configPath();
  const draft = `${path}.${process.pid}`;
  try {
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
    writeFileSync(draft, `${JSON.stringify(config, null, 2)}\n`, { mode: 0o600 });
    renameSync(draft, path);
  } catch (error) {
    rmSync(draft, { force: true });
    throw new CommandError(exitCodes.failed, `Could not write ${path}: ${(error as Error).message}`);
  }
}
