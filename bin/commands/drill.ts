import { printableText } from "../../packages/cli/src/terminal/terminal.ts";
import { command, helpPage } from "../command/command.ts";
import { drillProgram, readDrillOptions } from "../drill/options.ts";
import { runDrills } from "../drill/run.ts";

export async function main(): Promise<void> {
  const interrupt = new AbortController();
  // npm forwards the signal too, so a second one does not end the program: faults must be undone.
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, () => interrupt.abort());
  await command(drillProgram, async (given, words) => {
    const options = readDrillOptions(given, words);
    if (options === undefined) return helpPage(drillProgram);
    const allRang = await runDrills(options, (line) => console.log(printableText(line)), interrupt.signal);
    process.exitCode = interrupt.signal.aborted ? 130 : allRang ? 0 : 1;
    return undefined;
  });
}
