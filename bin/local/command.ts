import { type ParseArgsConfig, parseArgs } from "node:util";
import { ApiError, SettingError } from "../../functions/platform/errors.ts";
import { StartError } from "./engines.ts";

/** A command was called in a way it does not understand. */
export class UsageError extends Error {
  override readonly name = "UsageError";
}

/**
 * Runs a command: what it returns is all that it prints. A mistake of the person at the keyboard is one sentence and exit
 * code 1; anything else is a fault of ours, and keeps its stack.
 */
export async function command(usage: string, run: () => Promise<string>): Promise<void> {
  try {
    console.log(await run());
  } catch (error) {
    const isTheirs = [StartError, SettingError, ApiError, UsageError].some((type) => error instanceof type);
    if (!isTheirs) throw error;
    const hint = error instanceof UsageError ? `\nUsage: ${usage}` : "";
    console.error(`${(error as Error).message}${hint}`);
    process.exitCode = 1;
  }
}

/** @throws UsageError for an unknown option, one without a value, or a required one that is absent */
export function readOptions<const Required extends string, const Optional extends string>(
  required: readonly Required[],
  optional: readonly Optional[],
): Record<Required, string> & Partial<Record<Optional, string>> {
  const { values } = parse([...required, ...optional], false);
  for (const name of required) if (!values[name]) throw new UsageError(`--${name} is missing`);
  return values as Record<Required, string> & Partial<Record<Optional, string>>;
}

/** The words and the options of a command that takes both. @throws UsageError likewise */
export function readArguments<const Optional extends string>(
  optional: readonly Optional[],
): [string[], Partial<Record<Optional, string>>] {
  const { positionals, values } = parse(optional, true);
  return [positionals, values as Partial<Record<Optional, string>>];
}

function parse(names: readonly string[], allowPositionals: boolean) {
  const options: ParseArgsConfig["options"] = {};
  for (const name of names) options[name] = { type: "string" };
  const args: string[] = [];
  for (const arg of process.argv.slice(2)) {
    const option = args.at(-1);
    // A negative number is a value; the parser would take it for another option.
    if (/^-\d+$/.test(arg) && option?.startsWith("--")) args[args.length - 1] = `${option}=${arg}`;
    else args.push(arg);
  }
  try {
    return parseArgs({ args, options, strict: true, allowPositionals });
  } catch (error) {
    throw new UsageError((error as Error).message);
  }
}
