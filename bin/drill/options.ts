import { parseArgs } from "node:util";
import { UsageError } from "../local/command.ts";
import { type DrillName, drills, isDrillName } from "./drills.ts";

export const usage = "Usage: npm run --silent drill -- <name>|all --stage <name> [--yes]";

const about = `Rings alarms of a stage on purpose, with the AWS credentials of the environment, and reports which rang and notified their
topic, and which did not. Undoes what it did, on Ctrl-C too.`;

const optionLines = `Options:
  --stage <name>  the stage
  --yes           needed for prod and every stage that keeps its data
  -h, --help      show help

Exit codes: 0 every alarm rang, 1 an alarm did not ring or something is left, 2 usage error, 130 interrupted.`;

export interface DrillOptions {
  names: DrillName[];
  stage: string;
  /** The operator accepts a drill in a stage that keeps its data. */
  isConfirmed: boolean;
}

/**
 * Parses the command line.
 * @returns the options, or "list" when no drill is named or `--help` is given
 * @throws UsageError
 */
export function readDrillOptions(args: string[]): DrillOptions | "list" {
  const { values, positionals } = parse(args);
  const [name, ...others] = positionals;
  if (values.help || name === undefined) return "list";
  if (others.length > 0) throw new UsageError("Pass one name, or all.");
  if (name !== "all" && !isDrillName(name)) {
    throw new UsageError(`No drill named ${name}: run without a name for the list.`);
  }
  const { stage, yes: isConfirmed = false } = values;
  if (stage === undefined) throw new UsageError("--stage is missing: pass the name of the stage, such as dev.");
  if (!/^[a-z][a-z0-9-]*$/.test(stage)) throw new UsageError("--stage must be the name of a stage, such as dev.");
  if (stage === "prod" && !isConfirmed) throw new UsageError(REFUSAL);
  return { names: name === "all" ? everyName : [name], stage, isConfirmed };
}

export const REFUSAL = "A drill wakes the on-call engineer of this stage: pass --yes to confirm.";

const everyName = Object.keys(drills).filter(isDrillName);

function parse(args: string[]) {
  const options = {
    stage: { type: "string" },
    yes: { type: "boolean" },
    help: { type: "boolean", short: "h" },
  } as const;
  try {
    return parseArgs({ args, options, strict: true, allowPositionals: true });
  } catch (error) {
    throw new UsageError(`${(error as Error).message.split(/\. |\.$/, 1)[0]}.`);
  }
}

/** Returns the help page with all drills. */
export function listPage(): string {
  const width = Math.max(...everyName.map((name) => name.length));
  const rows = everyName.flatMap((name) => {
    const { proof, does, costs } = drills[name];
    const indent = " ".repeat(width + 13);
    return [`  ${name.padEnd(width)}  ${proof.padEnd(7)}  ${does}`, `${indent}costs: ${costs}`];
  });
  return [
    about,
    "",
    usage,
    "",
    "Drills, and what they prove: fault = a real fault rings the alarm, metric = a value of its metric does, state = only its",
    "notification is proven, because the state is set by hand.",
    ...rows,
    "",
    optionLines,
  ].join("\n");
}
