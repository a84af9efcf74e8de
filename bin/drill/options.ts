import { UsageError } from "../command/command.ts";
import { readStageName } from "../smoke/options.ts";
import { type DrillName, drills, isDrillName } from "./drills.ts";

export interface DrillOptions {
  names: DrillName[];
  stage: string;
  /** The operator accepts a drill in a stage that keeps its data. */
  isConfirmed: boolean;
}

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
    yes: { about: "needed for prod and every stage that keeps its data" },
  },
  examples: ["npm run --silent drill -- sweep-not-running --stage dev", "npm run --silent drill -- all --stage dev"],
} as const;

/**
 * Reads the command line.
 * @returns undefined when no drill is named
 * @throws UsageError
 */
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
