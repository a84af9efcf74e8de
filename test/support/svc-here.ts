import { Readable } from "node:stream";
import { jest } from "@jest/globals";
import { run } from "../../packages/cli/src/program.ts";
import type { Finished } from "./local-run.ts";
import { checkForSecrets, type Environment, environment } from "./svc.ts";

interface Options {
  env?: Environment;
  /** A stream that does not end keeps the command running. */
  input?: string | Readable;
  /** Receives what the command prints to stdout while it runs. */
  onStdout?: (text: string) => void;
  /** Whether the command is expected to print a secret to stdout, or to stderr. */
  showsSecret?: boolean | "stderr";
}

/**
 * Runs a command of `svc` in this process, with its own home directory. It costs far less than a process, so it is for commands
 * that need no signal and no terminal.
 */
export async function svcHere(
  args: string[],
  { env, input = "", onStdout = () => {}, showsSecret = false }: Options = {},
): Promise<Finished> {
  const output = { stdout: "", stderr: "" };
  const spies = (["stdout", "stderr"] as const).map((name) =>
    jest.spyOn(process[name], "write").mockImplementation((text: unknown, written?: unknown) => {
      output[name] += text;
      if (name === "stdout") onStdout(String(text));
      if (typeof written === "function") written();
      return true;
    }),
  );
  const streams = [process.stdout, process.stderr];
  const before = { ...process.env };
  const listeners = streams.map((stream) => stream.listeners("error"));
  const signalListeners = () => ["SIGINT", "SIGTERM"].map((name) => process.listenerCount(name));
  const expected = signalListeners();
  Object.assign(process.env, environment(env));
  delete process.env.FORCE_COLOR;
  // As in a pipe, also when the test itself runs on a terminal.
  const terminals = streams.map(({ isTTY, columns }) => ({ isTTY, columns }));
  for (const stream of streams) Object.assign(stream, { isTTY: false, columns: undefined });
  const stdin = jest
    .spyOn(process, "stdin", "get")
    .mockReturnValue((typeof input === "string" ? Readable.from([Buffer.from(input)]) : input) as typeof process.stdin);
  try {
    await run(args);
    const finished = { code: Number(process.exitCode ?? 0), ...output };
    checkForSecrets(args, finished, showsSecret);
    expect(signalListeners()).toEqual(expected);
    return finished;
  } finally {
    process.exitCode = undefined;
    for (const name of Object.keys(process.env)) if (!(name in before)) delete process.env[name];
    Object.assign(process.env, before);
    for (const [index, stream] of streams.entries()) {
      for (const added of stream.listeners("error")) {
        if (!listeners[index]?.includes(added)) stream.off("error", added as () => void);
      }
    }
    for (const spy of spies) spy.mockRestore();
    Object.assign(process.stdout, terminals[0]);
    Object.assign(process.stderr, terminals[1]);
    stdin.mockRestore();
  }
}
