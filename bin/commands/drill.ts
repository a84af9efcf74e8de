import { printableText } from "../../packages/cli/src/terminal/terminal.ts";
import { command, helpPage, UsageError } from "../command/command.ts";
import { drills, isDrillName } from "../drill/drills.ts";
import { type DrillOptions, runDrills } from "../drill/run.ts";
import { readStageName } from "../smoke/options.ts";

const everyName = Object.keys(drills).filter(isDrillName);

export const drillProgram = {
  name: "npm run --silent drill",
  about: `Rings alarms of a stage by real faults, with the AWS credentials of the environment, and reports which rang and notified
their topic, and which did not. Undoes what it did, on Ctrl-C too. docs/runbook.md has a command for each other alarm.

${drillLines().join("\n")}

Exit codes: 0 every alarm rang, 1 an alarm did not ring or something is left, 2 usage error, 130 interrupted.`,
  words: "<name>|all",
  options: {
    stage: { value: "<name>", about: "the stage" },
    yes: { about: "needed for a stage that keeps its data" },
  },
  examples: ["npm run --silent drill -- delivery-errors --stage dev", "npm run --silent drill -- all --stage dev"],
} as const;

/** Reads the command line. @returns undefined when no drill is named @throws UsageError */
export function readDrillOptions(
  { stage, yes }: Partial<Record<keyof typeof drillProgram.options, string | undefined>>,
  [name, ...others]: string[],
): DrillOptions | undefined {
  if (name === undefined) return undefined;
  if (others.length > 0) throw new UsageError("Pass one name, or all.");
  if (name !== "all" && !isDrillName(name)) {
    throw new UsageError(`No drill named ${name}: run without a name for the list.`);
  }
  return { names: name === "all" ? everyName : [name], stage: readStageName(stage), isConfirmed: yes !== undefined };
}

/** Returns the drills with what they do and cost. */
function drillLines(): string[] {
  const width = Math.max(...everyName.map((name) => name.length));
  return everyName.flatMap((name) => {
    const { does, costs } = drills[name];
    return [`  ${name.padEnd(width)}  ${does}`, `${" ".repeat(width + 4)}costs: ${costs}`];
  });
}

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
