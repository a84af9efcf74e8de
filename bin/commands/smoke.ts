import { printableText } from "../../packages/cli/src/terminal/terminal.ts";
import { command } from "../command/command.ts";
import { readSmokeOptions, smokeProgram } from "../smoke/options.ts";
import { smoke } from "../smoke/run.ts";

export async function main(): Promise<void> {
  const interrupt = new AbortController();
  // npm forwards the signal too, so a second one does not end the program: what was created must be removed.
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, () => interrupt.abort());
  await command(smokeProgram, async (given) => {
    const options = readSmokeOptions(given, process.env);
    const hasPassed = await smoke(options, (line) => console.log(printableText(line)), interrupt.signal);
    process.exitCode = interrupt.signal.aborted ? 130 : hasPassed ? 0 : 1;
    return undefined;
  });
}
