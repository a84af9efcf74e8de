import { WriteStream } from "node:tty";
import { escaped, replaceUnseen } from "../../../../functions/foundation/schema/unseen-text.ts";
import { stringifyExactly } from "../../../client/src/exact-json.ts";
import { usageError } from "./exit-codes.ts";

/* Terminal input and output. Results go to stdout, all other text goes to stderr. */

/** SGR codes that switch a style on and off (ECMA-48, section 8.3.117). `util.styleText` needs Node 20.18. */
const styles = {
  bold: [1, 22],
  dim: [2, 22],
  red: [31, 39],
  green: [32, 39],
  yellow: [33, 39],
  magenta: [35, 39],
} as const;

export type Style = keyof typeof styles;

/** Styles a text, unless the stream is not a terminal or the user disabled colors (NO_COLOR). */
export function styled(style: Style, text: string, stream: NodeJS.WriteStream = process.stdout): string {
  const [on, off] = styles[style];
  return hasColors(stream) ? `\u001b[${on}m${text}\u001b[${off}m` : text;
}

/** getColorDepth reads NO_COLOR, FORCE_COLOR and TERM. */
function hasColors(stream: NodeJS.WriteStream): boolean {
  const isWanted = stream.isTTY || process.env.FORCE_COLOR !== undefined;
  return isWanted && WriteStream.prototype.getColorDepth(process.env) > 2;
}

/** Prints a result. Only its line breaks, tabs and styles act on the terminal. */
export function print(text: string): void {
  process.stdout.write(`${printableText(text)}\n`);
}

/** Prints any other text. Only its line breaks, tabs and styles act on the terminal. */
export function note(text: string): void {
  process.stderr.write(`${printableText(text)}\n`);
}

/** An own style, or what is between them. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: styles begin with ESC
const STYLE_OR_TEXT = /(\u001b\[(?:1|2|22|31|32|33|35|39)m)|\u001b|[^\u001b]+/g;

/** Escapes what no formatting function has, such as an error code that a server chooses. Keeps line breaks, tabs and styles. */
export const printableText = (text: string): string =>
  text.replace(STYLE_OR_TEXT, (part, style: string | undefined) => style ?? replaceUnseen(part, escapedInLines));

const escapedInLines = (found: string): string => (/[\n\t]/.test(found) ? found : escaped(found));

/** Escapes the characters of untrusted text that a reader does not see or that would act on the terminal, line breaks included. */
export const printable = (text: string): string => replaceUnseen(text, escaped);

/** Prints JSON, with the characters escaped that JSON allows unescaped. */
export const jsonText = (value: unknown, indent?: number): string =>
  replaceUnseen(stringifyExactly(value, indent), escapedInLines);

/** Prints a list: its records with `--json`, otherwise a view of it, or on stderr that it is empty. */
export function printList<Item>(
  list: Item[],
  json: boolean | undefined,
  empty: string,
  view: (list: Item[]) => string,
) {
  if (json) return print(jsonText(list));
  if (list.length === 0) return note(empty);
  print(view(list));
}

/** Whether a person can answer a question. */
export const isInteractive = (): boolean => process.stdin.isTTY === true && process.stderr.isTTY === true;

export const ask = (question: string): Promise<string> => readLine(question, { isHidden: false });

/** Asks for a secret, without echo. */
export const askHidden = (question: string): Promise<string> => readLine(question, { isHidden: true });

async function readLine(question: string, { isHidden }: { isHidden: boolean }): Promise<string> {
  // Imported here because most commands ask nothing, and the import would slow down --help.
  const [{ createInterface }, { Writable }] = await Promise.all([
    import("node:readline/promises"),
    import("node:stream"),
  ]);
  const silence = new Writable({ write: (_chunk, _encoding, done) => done() });
  const output = isHidden ? silence : process.stderr;
  const reader = createInterface({ input: process.stdin, output, terminal: true, historySize: 0 });
  // Only now, because the terminal would echo what is typed before readline has switched its echo off.
  if (isHidden) process.stderr.write(question);
  const interrupted = new AbortController();
  const stop = () => interrupted.abort();
  reader.once("SIGINT", stop).once("close", stop);
  try {
    return (await reader.question(isHidden ? "" : question, { signal: interrupted.signal })).trim();
  } catch {
    // The exit code that the shell reports for a program that SIGINT has ended.
    process.stderr.write("\n");
    return process.exit(130);
  } finally {
    if (isHidden) process.stderr.write("\n");
    reader.off("close", stop).close();
  }
}

export const yesOption = ["-y, --yes", "do not ask for confirmation"] as const;

/**
 * Asks for confirmation of an action that cannot be undone.
 * @param action names it in the imperative: `Delete the key 0193…`
 * @param isConfirmed whether `--yes` was passed
 * @throws CommandError when the user declines, or stdin is not a terminal
 */
export async function confirm(action: string, isConfirmed: boolean | undefined): Promise<void> {
  if (isConfirmed) return;
  if (!isInteractive()) {
    throw usageError("This cannot be undone.", "Pass --yes to confirm when not running interactively.");
  }
  const answer = await ask(`${action}? This cannot be undone. [y/N] `);
  if (!/^y(es)?$/i.test(answer)) throw usageError("Nothing was changed.");
}

export async function readStdin(): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of process.stdin as AsyncIterable<Buffer>) chunks.push(chunk);
  return Buffer.concat(chunks);
}
