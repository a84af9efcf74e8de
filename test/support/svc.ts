import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Finished } from "./local-run.ts";

/* Runs `svc` as a separate process with its own home directory, as a person or a script does. */

export const program = join(import.meta.dirname, "../../packages/cli/bin/svc.js");
const home = mkdtempSync(join(tmpdir(), "svc-"));
afterAll(() => rmSync(home, { recursive: true, force: true, maxRetries: 5 }));

export type Environment = Record<string, string>;

interface Options {
  env?: Environment;
  input?: string | Buffer;
  cwd?: string;
  /** Whether the command is expected to print a secret to stdout, or to stderr. */
  showsSecret?: boolean | "stderr";
}

/** Creates an empty directory for XDG_CONFIG_HOME. */
export const freshConfigHome = (): string => mkdtempSync(join(home, "config-"));

export const environment = (env: Environment = {}): Environment => ({
  PATH: process.env.PATH ?? "",
  HOME: home,
  XDG_CONFIG_HOME: join(home, "no-config"),
  XDG_CACHE_HOME: join(home, "cache"),
  NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE ?? "",
  ...env,
});

/** Secrets that commands of the test file have printed. */
const leaks: string[] = [];
const SECRET = /\bsvcp?_[0-9a-f]{9}|\bwhsec_\w|\beyJ[\w-]{5}|\bbearer /i;

export function checkForSecrets(args: string[], { stdout, stderr }: Finished, showsSecret: boolean | "stderr"): void {
  const checked = { stdout: showsSecret === true ? "" : stdout, stderr: showsSecret === "stderr" ? "" : stderr };
  for (const [where, text] of Object.entries(checked)) {
    const found = SECRET.exec(text)?.[0];
    if (found !== undefined) leaks.push(`${where} of svc ${args.join(" ")}: ${found}`);
  }
}
afterEach(() => expect(leaks.splice(0)).toEqual([]));

/** Runs `svc` until it ends. */
export async function svc(args: string[], { input = "", ...options }: Options = {}): Promise<Finished> {
  const running = startSvc(args, options);
  running.child.stdin?.on("error", () => {}).end(input);
  return running.ended;
}

export interface Running {
  child: ChildProcess;
  /** The output so far. */
  stdout(): string;
  stderr(): string;
  ended: Promise<Finished>;
}

/** A command that does not end by itself fails its test, and does not hold it up. */
const limit = { timeout: 90_000, killSignal: "SIGKILL" } as const;

export function startSvc(args: string[], { env, cwd, showsSecret = false }: Omit<Options, "input"> = {}): Running {
  return follow(
    spawn(process.execPath, [program, ...args], { env: environment(env), cwd: cwd ?? home, ...limit }),
    args,
    showsSecret,
  );
}

function follow(child: ChildProcess, args: string[], showsSecret: boolean | "stderr"): Running {
  let stdout = "";
  let stderr = "";
  child.stdout?.setEncoding("utf8").on("data", (text: string) => {
    stdout += text;
  });
  child.stderr?.setEncoding("utf8").on("data", (text: string) => {
    stderr += text;
  });
  const ended = once(child, "close").then(([code]) => {
    const finished = { code: code as number, stdout, stderr };
    checkForSecrets(args, finished, showsSecret);
    return finished;
  });
  return { child, stdout: () => stdout, stderr: () => stderr, ended };
}

/** A Python program that runs its arguments on a pseudo terminal. */
const ON_A_TERMINAL = "import os,pty,sys; sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])))";

/**
 * Runs `svc` on a pseudo terminal. Its whole output, including the echo, is returned as stdout.
 * @param inputs each text to type, after the output that it waits for
 */
export async function svcOnTerminal(
  args: string[],
  inputs: [afterText: string, typed: string][],
  env: Environment = {},
): Promise<Finished> {
  const command = ["-c", ON_A_TERMINAL, process.execPath, program, ...args];
  const child = spawn("python3", command, { env: environment({ TERM: "xterm", ...env }), cwd: home });
  const running = follow(child, args, false);
  const waiting = [...inputs];
  let seen = 0;
  child.stdout.on("data", () => {
    const [next] = waiting;
    const at = next ? running.stdout().indexOf(next[0], seen) : -1;
    if (!next || at === -1) return;
    seen = at + next[0].length;
    waiting.shift();
    // After a delay, because svc prints the question before it reads from the terminal.
    setTimeout(() => child.stdin.write(next[1]), 100);
  });
  return running.ended;
}
