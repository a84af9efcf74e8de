import { listPage, readDrillOptions, usage } from "../drill/options.ts";
import { runDrills } from "../drill/run.ts";
import { UsageError } from "../local/command.ts";
import { printableText } from "../local/printable.ts";
import { AwsError } from "../smoke/aws/clients.ts";

/*
 * `npm run drill`: rings alarms of a stage on purpose. Exit codes: 0 = every alarm rang, 1 = one did not, 2 = usage
 * error, 130 = interrupted.
 */

export async function main(): Promise<void> {
  const interrupt = new AbortController();
  // npm forwards the signal too, so a second one does not end the program: faults must be undone.
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, () => interrupt.abort());
  const print = (line: string) => console.log(printableText(line));
  try {
    const options = readDrillOptions(process.argv.slice(2));
    if (options === "list") {
      print(listPage());
      return;
    }
    const allRang = await runDrills(options, print, interrupt.signal);
    process.exitCode = interrupt.signal.aborted ? 130 : allRang ? 0 : 1;
  } catch (error) {
    const isUsageError = error instanceof UsageError;
    if (!isUsageError && !(error instanceof AwsError)) throw error;
    console.error(printableText(isUsageError ? `${error.message}\n${usage}` : error.message));
    process.exitCode = isUsageError ? 2 : 1;
  }
}
