import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { delimiter, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { StartError } from "../command/start-error.ts";

/** A program that others wrote and that checks the service, or stands in for a part of AWS. `npm test` does not use it. */
export interface Engine {
  /** What it shows, for the help page: less than a line. */
  summary: string;
  /** Programs that must be in PATH. Without one of them the engine is skipped. */
  programs: readonly string[];
  /** Command that installs them. */
  install: string;
  /**
   * Prints what it counts and finds. Ends everything that it starts.
   * @param options those of engines that generate their input
   * @throws StartError when the engine disagrees with the service
   */
  run(options: { minutes: string; seed: string }): Promise<void>;
}

/** Returns the sentence that says why the engine is skipped; undefined = its programs are installed. */
export function skipReason({ programs, install }: Engine, path = process.env.PATH ?? ""): string | undefined {
  const folders = path.split(delimiter);
  const missing = programs.filter((program) => !folders.some((folder) => existsSync(join(folder, program))));
  if (missing.length === 0) return undefined;
  return `Skipped, because ${missing.join(" and ")} is not in PATH: install it with ${install}`;
}

type Command = [program: string, ...args: string[]];
interface Place {
  /** Beside the variables of this process. */
  env?: Record<string, string>;
  cwd?: string;
}

const START_TIMEOUT_MS = 30_000;

/**
 * Runs a server while `use` runs, and ends it. Its output is discarded.
 * @param url where it responds once it has started
 * @throws StartError when it does not start
 */
export async function withServer(
  [program, ...args]: Command,
  url: string,
  { env }: Place,
  use: () => Promise<void>,
): Promise<void> {
  const server = spawn(program, args, { stdio: "ignore", env: { ...process.env, ...env } });
  const end = () => void server.kill("SIGKILL");
  process.once("exit", end);
  const ended = once(server, "exit");
  try {
    for (const endsAt = Date.now() + START_TIMEOUT_MS; ; await sleep(200)) {
      if (server.exitCode !== null || Date.now() > endsAt) throw new StartError(`${program} did not start.`);
      if ((await fetch(url).catch(() => undefined)) !== undefined) break;
    }
    await use();
  } finally {
    end();
    await ended;
    process.removeListener("exit", end);
  }
}

/** Runs a program to its end, with its output on this terminal. @throws StartError unless it succeeds */
export async function runToEnd([program, ...args]: Command, { env, cwd }: Place = {}): Promise<void> {
  const [code] = await once(spawn(program, args, { stdio: "inherit", cwd, env: { ...process.env, ...env } }), "exit");
  if (code !== 0) throw new StartError(`${program} exited with ${code}.`);
}

/** Waits until a condition is true. @throws StartError when it is not in time */
export async function until(what: string, seconds: number, isTrue: () => boolean): Promise<void> {
  for (const endsAt = Date.now() + seconds * 1_000; !isTrue(); await sleep(100)) {
    if (Date.now() > endsAt) throw new StartError(`No ${what} in ${seconds} s.`);
  }
}
