import { parseArgs } from "node:util";
import { ApiError, SettingError } from "../../functions/foundation/platform/errors.ts";
import { CommandError } from "../../packages/cli/src/terminal/exit-codes.ts";
import { printableText } from "../../packages/cli/src/terminal/terminal.ts";
import { ApiError as ClientApiError, NetworkError } from "../../packages/client/src/errors.ts";
import { StartError } from "./start-error.ts";
import { unreachable } from "./unreachable.ts";

/** The arguments of a program do not match its usage. */
export class UsageError extends Error {
  override readonly name = "UsageError";
}

interface Option {
  /** Placeholder of the value: `<id>`; absent = a flag, whose value is `true`. */
  value?: string;
  about: string;
  isRequired?: true;
  /** Used when the option is absent. */
  fallback?: string;
  /** What the help shows as the default, where no fixed value is. */
  shownDefault?: string;
}

type Options = Record<string, Option>;

/** What a program accepts and what its help page shows. */
export interface Program<Accepted extends Options> {
  /** How a person starts it: `npm run --silent token`. */
  name: string;
  /** One or more lines for the top of the help page. */
  about: string;
  /** The words before the options, as the usage line shows them; absent = none are accepted. */
  words?: string;
  /** By name, without the dashes. */
  options?: Accepted;
  /** Environment variables that it reads. */
  settings?: readonly { name: string; about: string }[];
  examples: readonly string[];
}

type ValuesOf<Accepted extends Options> = {
  [Name in keyof Accepted]: Accepted[Name] extends { isRequired: true } | { fallback: string }
    ? string
    : string | undefined;
};

/**
 * Runs a program: parses its arguments, prints its help page for `--help`, otherwise prints what `run` returns. An error of
 * the caller, or of a connection, is one message on stderr and exit code 1, or 2 if the arguments are wrong; any other error is a fault
 * of the program and keeps its stack.
 * @param run returns the text to print; undefined = nothing
 */
export async function command<const Accepted extends Options>(
  program: Program<Accepted>,
  run: (options: ValuesOf<Accepted>, words: string[]) => Promise<string | undefined>,
): Promise<void> {
  const args = process.argv.slice(2);
  try {
    if (args.some((arg) => arg === "--help" || arg === "-h")) {
      console.log(helpPage(program));
      return;
    }
    const { values, words } = readArguments(program, args);
    const text = await run(values, words);
    if (text !== undefined) console.log(printableText(text));
  } catch (error) {
    const ofCaller = [StartError, SettingError, ApiError, ClientApiError, CommandError, NetworkError, UsageError];
    const isCallersError = ofCaller.some((type) => error instanceof type);
    const message = isCallersError ? (error as Error).message : unreachable(error);
    if (message === undefined) throw error;
    const isWrongUse = error instanceof UsageError;
    const usage = isWrongUse ? `\nUsage: ${usageOf(program)}\nOptions and settings: ${program.name} -- --help` : "";
    console.error(printableText(`${message}${usage}`));
    process.exitCode = isWrongUse ? 2 : 1;
  }
}

/** @throws UsageError for an unknown option, an option without a value, or a required option that is absent */
export function readArguments<Accepted extends Options>(
  program: Program<Accepted>,
  args: readonly string[],
): { values: ValuesOf<Accepted>; words: string[] } {
  const rows = Object.entries<Option>(program.options ?? {});
  const values: Record<string, string | undefined> = {};
  const parsed = parse(withAttachedNegatives(args), rows, program.words !== undefined);
  for (const [name, { isRequired, fallback }] of rows) {
    values[name] = parsed.values[name]?.toString() ?? fallback;
    if (isRequired && !values[name]) throw new UsageError(`--${name} is missing.`);
  }
  return { values: values as ValuesOf<Accepted>, words: parsed.positionals };
}

function parse(args: string[], rows: [string, Option][], allowPositionals: boolean) {
  const typeOf = ({ value }: Option) => (value === undefined ? ("boolean" as const) : ("string" as const));
  const options = Object.fromEntries(rows.map(([name, option]) => [name, { type: typeOf(option) }]));
  try {
    return parseArgs({ args, options, strict: true, allowPositionals });
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    // The argument may be a credential whose option is missing, so it is not repeated.
    const isStray = code === "ERR_PARSE_ARGS_UNEXPECTED_POSITIONAL";
    if (isStray) throw new UsageError("Unexpected argument: every value needs an option.");
    // Node goes on to explain how to pass a word that starts with a dash; no program here accepts one.
    const [sentence] = message.split(/\.(?:\s|$)/);
    throw new UsageError(`${sentence}.`);
  }
}

/** Joins `--expires-in` and `-1` into one argument: the parser takes a separate negative number for another option. */
function withAttachedNegatives(args: readonly string[]): string[] {
  const joined: string[] = [];
  for (const arg of args) {
    const option = joined.at(-1);
    if (/^-\d+$/.test(arg) && option?.startsWith("--")) joined[joined.length - 1] = `${option}=${arg}`;
    else joined.push(arg);
  }
  return joined;
}

function usageOf({ name, words, options = {} as Options }: Program<Options>): string {
  const parts = Object.entries(options).map(([option, row]) =>
    row.isRequired ? usageOfOption(option, row) : `[${usageOfOption(option, row)}]`,
  );
  const args = [...(words === undefined ? [] : [words]), ...parts];
  return args.length === 0 ? name : `${name} -- ${args.join(" ")}`;
}

const usageOfOption = (name: string, { value }: Option): string =>
  value === undefined ? `--${name}` : `--${name} ${value}`;

export function helpPage(program: Program<Options>): string {
  const { about, options = {}, settings = [], examples } = program;
  const optionRows = Object.entries(options).map(([name, option]) => [
    usageOfOption(name, option),
    `${option.about}${note(option)}`,
  ]);
  const section = (title: string, rows: string[][]) => (rows.length === 0 ? [] : ["", `${title}:`, ...aligned(rows)]);
  return [
    about,
    "",
    `Usage: ${usageOf(program)}`,
    ...section("Options", [...optionRows, ["-h, --help", "show this help"]]),
    ...section(
      "Settings (environment variables)",
      settings.map((setting) => [setting.name, setting.about]),
    ),
    "",
    "Examples:",
    ...examples.map((example) => `  ${example}`),
  ].join("\n");
}

function note({ isRequired, fallback, shownDefault = fallback }: Option): string {
  if (isRequired) return " (required)";
  return shownDefault === undefined ? "" : ` (default: ${shownDefault})`;
}

function aligned(rows: string[][]): string[] {
  const width = Math.max(...rows.map(([name = ""]) => name.length));
  return rows.map(([name = "", about = ""]) => `  ${name.padEnd(width)}  ${about}`);
}
