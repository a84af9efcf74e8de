import { printableText } from "../../packages/cli/src/terminal/terminal.ts";
import { command } from "../command/command.ts";
import { readSmokeOptions, smokeProgram } from "../smoke/options.ts";
import { smoke } from "../smoke/run.ts";

/** Ctrl-C signals this process and npm, and npm forwards its signal. A second signal within this time is that copy. */
const FORWARDED_SIGNAL_MS = 500;

export async function main(): Promise<void> {
  const interrupt = new AbortController();
  let interruptedAt: number | undefined;
  for (const signal of ["SIGINT", "SIGTERM"] as const) {
    process.on(signal, () => {
      if (interruptedAt !== undefined && Date.now() - interruptedAt > FORWARDED_SIGNAL_MS) process.exit(130);
      interruptedAt ??= Date.now();
      interrupt.abort();
    });
  }
  await command(smokeProgram, async (given) => {
    const options = readSmokeOptions(given, process.env);
    const hasPassed = await smoke(options, (line) => console.log(printableText(line)), interrupt.signal);
    process.exitCode = interrupt.signal.aborted ? 130 : hasPassed ? 0 : 1;
    return undefined;
  });
}
