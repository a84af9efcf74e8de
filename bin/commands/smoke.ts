import { BadArguments, readSmokeOptions, usage } from "../smoke/options.ts";
import { smoke } from "../smoke/run.ts";

/*
 * `npm run smoke`: is a live stage well? Asks it from outside, as its users do, within a minute. Exit code 0 = yes, 1 = no,
 * 2 = it was not called as it should be, 130 = Ctrl-C.
 */

/** On Ctrl-C the terminal signals us and npm, and npm passes its signal on: the second of the two is no impatience. */
const ECHO_MS = 500;

export async function main(): Promise<void> {
  const interrupt = new AbortController();
  let interruptedAt: number | undefined;
  for (const signal of ["SIGINT", "SIGTERM"] as const) {
    process.on(signal, () => {
      if (interruptedAt !== undefined && Date.now() - interruptedAt > ECHO_MS) process.exit(130);
      interruptedAt ??= Date.now();
      interrupt.abort();
    });
  }

  try {
    const options = readSmokeOptions(process.argv.slice(2), process.env);
    const isWell = await smoke(options, console.log, interrupt.signal);
    process.exitCode = interrupt.signal.aborted ? 130 : isWell ? 0 : 1;
  } catch (error) {
    if (!(error instanceof BadArguments)) throw error;
    console.error(`${error.message}\nUsage: ${usage}`);
    process.exitCode = 2;
  }
}
