import { lstatSync, mkdirSync, readFileSync, readlinkSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { dirname, join, resolve } from "node:path";
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

/** Replaces the file atomically, or the file that a link of a dotfiles folder leads to. Only its owner can read it, from the first byte on. */
export function writeConfig(config: Config): void {
  const path = targetOf(configPath());
  const draft = `${path}.${process.pid}`;
  try {
    createFolder(dirname(path));
    writeFileSync(draft, `${JSON.stringify(config, null, 2)}\n`, { mode: 0o600 });
    renameSync(draft, path);
  } catch (error) {
    rmSync(draft, { force: true });
    throw new CommandError(exitCodes.failed, `Could not write ${path}: ${(error as Error).message}`);
  }
}

const entryOf = (path: string) => lstatSync(path, { throwIfNoEntry: false });

/** Follows links, also to a file that does not exist yet. */
const targetOf = (path: string): string =>
  entryOf(path)?.isSymbolicLink() ? targetOf(resolve(dirname(path), readlinkSync(path))) : path;

/** With its parents. (Node's own `recursive` never returns where the file system creates no folders, as in /proc.) */
function createFolder(path: string): void {
  if (entryOf(path)) return;
  createFolder(dirname(path));
  try {
    mkdirSync(path, { mode: 0o700 });
  } catch (error) {
    // Another process may have created it a moment ago.
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
  }
}
