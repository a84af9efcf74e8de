import { jest } from "@jest/globals";
import { environment, type Finished } from "./local-run.ts";

/**
 * Runs a program of `bin/` in this process, which costs far less than a process. Only for programs that call one service per test
 * file: the clients of the engines are created once.
 */
export async function commandHere(file: string, args: string[], settings: Record<string, string>): Promise<Finished> {
  const output = { log: "", error: "" };
  const spies = (["log", "error"] as const).map((name) =>
    jest.spyOn(console, name).mockImplementation((text) => {
      output[name] += `${text}\n`;
    }),
  );
  const before = { argv: process.argv, env: process.env };
  Object.assign(process, { argv: ["node", file, ...args], env: environment(settings) });
  try {
    const { main }: { main: () => Promise<void> } = await import(`../../bin/commands/${file}.ts`);
    await main();
    return { code: Number(process.exitCode ?? 0), stdout: output.log, stderr: output.error };
  } finally {
    Object.assign(process, before);
    process.exitCode = undefined;
    for (const spy of spies) spy.mockRestore();
  }
}
