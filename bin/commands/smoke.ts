import { UsageError } from "../local/command.ts";
import { printableText } from "../local/printable.ts";
import { help, readSmokeOptions, usage } from "../smoke/options.ts";
import { smoke } from "../smoke/run.ts";

/*
 * `npm run smoke`: checks a running stage from outside, within a minute. Exit codes: 0 = all checks passed, 1 = a check
 * failed, 2 = usage error, 130 = interrupted.
 */

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

  try {
    const options = readSmokeOptions(process.argv.slice(2), process.env);
    if (options === "help") {
      console.log(help);
    } else {
      const hasPassed = await smoke(options, (line) => console.log(printableText(line)), interrupt.signal);
      process.exitCode = interrupt.signal.aborted ? 130 : hasPassed ? 0 : 1;
    }
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    console.error(`${error.message}\n${usage}\nPass --help for the list of options.`);
    process.exitCode = 2;
  }
}
