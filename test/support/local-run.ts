import { type ChildProcess, type ChildProcessByStdio, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Readable, Writable } from "node:stream";
import { promisify } from "node:util";
import { closeAfterFile } from "./cleanup.ts";
import { leaksIn } from "./leaks.ts";

const root = join(import.meta.dirname, "../..");
const node = join(root, "node_modules/.bin/node");
const endsWithParent = join(import.meta.dirname, "ends-with-parent.cjs");

type Settings = Record<string, string>;

const dataDirs: string[] = [];

/** Creates an empty data directory. It is deleted after the test file. */
export function freshDataDir(): string {
  const path = mkdtempSync(join(tmpdir(), "local-run-"));
  dataDirs.push(path);
  return path;
}

afterAll(() => {
  const leaks = dataDirs.flatMap(leaksOf);
  for (const path of dataDirs) rmSync(path, { recursive: true, force: true, maxRetries: 5 });
  expect(leaks).toEqual([]);
});

/** Returns the lines of a log that contain a secret, such as the JWT secret of the run. */
function leaksOf(dataDir: string): string[] {
  const textOf = (name: string) => {
    const path = join(dataDir, name);
    return existsSync(path) ? readFileSync(path, "utf8") : "";
  };
  const known = [textOf("jwt-secret").trim()];
  return textOf("service.log")
    .split("\n")
    .filter((line) => leaksIn(line, known).length > 0);
}

/** Returns an environment with only these settings, and free ports. */
export function environment(settings: Settings): NodeJS.ProcessEnv {
  const { PATH, HOME, NODE_COMPILE_CACHE } = process.env;
  return { PATH, HOME, NODE_COMPILE_CACHE, PORT: "0", SQS_PORT: "0", ...settings };
}

/**
 * Starts a Node program of this repository as a process. It ends with the test file at the latest, even when the
 * process that runs the test is killed.
 */
export function startProgram(args: string[], settings: Settings): ChildProcessByStdio<Writable, Readable, Readable> {
  const child = spawn(node, ["--require", endsWithParent, ...args], { cwd: root, env: environment(settings) });
  closeAfterFile(() => kill(child));
  return child;
}

/** Kills a process and waits until it has ended. Does nothing when it has already ended. */
export async function kill(child: ChildProcess, signal: NodeJS.Signals = "SIGKILL"): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, "exit");
  child.kill(signal);
  await ended;
}

export interface LocalRun {
  process: ChildProcess;
  /** The output of the program until it was ready. */
  page: string;
  baseUrl: string;
  eventsQueueUrl: string;
  token: string;
  projectId: string;
  /** URL of the embedded DynamoDB engine. */
  dynamoEndpoint: string;
  /** Sends a signal and waits until the process has ended. Returns the exit code; null after SIGKILL. */
  end(signal: NodeJS.Signals): Promise<number | null>;
}

/**
 * Starts the program of `npm start` as a process and waits until it is ready.
 * @throws Error with its output to stderr when it ends before it is ready
 */
export async function startLocalRun(settings: Settings): Promise<LocalRun> {
  const child = startProgram(["bin/local.ts"], settings);
  let page = "";
  let errors = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    errors += text;
  });
  child.stdout.setEncoding("utf8");
  await new Promise<void>((resolve, reject) => {
    child.once("exit", (code) => reject(new Error(`The service exited with ${code} before it was ready: ${errors}`)));
    child.stdout.on("data", (text: string) => {
      page += text;
      if (/^ready .*$/m.test(page)) resolve();
    });
  });
  const find = (pattern: RegExp) => pattern.exec(page)?.[1] ?? "";
  const { dynamoEndpoint } = JSON.parse(readFileSync(join(settings.DATA_DIR ?? "", "running.json"), "utf8"));
  return {
    process: child,
    page,
    baseUrl: find(/^ready (\S+)$/m),
    eventsQueueUrl: find(/events queue +(\S+)/),
    token: find(/#token=(\S+)/),
    projectId: find(/project +(\S+)/),
    dynamoEndpoint,
    async end(signal) {
      await kill(child, signal);
      return child.exitCode;
    },
  };
}

/** Upper bound for a command that hangs, not for a slow one. */
const COMMAND_TIMEOUT_MS = 240_000;

export interface Finished {
  code: number;
  stdout: string;
  stderr: string;
}

/** Runs a program of `bin/` and waits until it has ended. */
export async function runCommand(file: string, args: string[], settings: Settings): Promise<Finished> {
  try {
    const options = { cwd: root, env: environment(settings), timeout: COMMAND_TIMEOUT_MS };
    return { code: 0, ...(await promisify(execFile)(node, ["bin/run.cjs", file, ...args], options)) };
  } catch (error) {
    const { code = 1, stdout = "", stderr = "" } = error as Partial<Finished>;
    return { code, stdout, stderr };
  }
}
