import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { leaksIn } from "./leaks.ts";

const root = join(import.meta.dirname, "../..");
const node = join(root, "node_modules/.bin/node");

type Settings = Record<string, string>;

const dataDirs: string[] = [];

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

/** The lines of a run's log that hold a secret, its own JWT secret among them. */
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

/** The environment of a person who has set nothing but these. */
function environment(settings: Settings): NodeJS.ProcessEnv {
  const { PATH, HOME } = process.env;
  return { PATH, HOME, PORT: "0", SQS_PORT: "0", ...settings };
}

export interface LocalRun {
  process: ChildProcess;
  /** All that the start page said. */
  page: string;
  baseUrl: string;
  eventsQueueUrl: string;
  token: string;
  projectId: string;
  /** Where the embedded DynamoDB engine listens. */
  dynamoEndpoint: string;
  /** Sends a signal and waits for the end. Returns the exit code, null after a kill. */
  end(signal: NodeJS.Signals): Promise<number | null>;
}

/** Starts `npm start`'s program as a process of its own and waits until it is ready. */
export async function startLocalRun(settings: Settings): Promise<LocalRun> {
  const child = spawn(node, ["bin/local.ts"], { cwd: root, env: environment(settings) });
  let page = "";
  let errors = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    errors += text;
  });
  child.stdout.setEncoding("utf8");
  await new Promise<void>((resolve, reject) => {
    child.once("exit", (code) => reject(new Error(`ended with ${code} before it was ready: ${errors}`)));
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
    token: find(/TOKEN=(\S+)/),
    projectId: find(/project +(\S+)/),
    dynamoEndpoint,
    async end(signal) {
      if (child.exitCode !== null || child.signalCode !== null) return child.exitCode;
      const ended = once(child, "exit");
      child.kill(signal);
      return (await ended)[0] as number | null;
    },
  };
}

export interface Finished {
  code: number;
  stdout: string;
  stderr: string;
}

/** Runs one of the programs in bin/ to its end. */
export async function runCommand(file: string, args: string[], settings: Settings): Promise<Finished> {
  try {
    const options = { cwd: root, env: environment(settings), timeout: 30_000 };
    return { code: 0, ...(await promisify(execFile)(node, [`bin/${file}.ts`, ...args], options)) };
  } catch (error) {
    const { code = 1, stdout = "", stderr = "" } = error as Partial<Finished>;
    return { code, stdout, stderr };
  }
}
