import { styleText } from "node:util";
import { usageError } from "./exit-codes.ts";

/* What a person sees and answers. Results go to stdout; all that is said about them goes to stderr. */

export type Style = Parameters<typeof styleText>[0];

/** Colours, where they can be seen and nobody declined them (NO_COLOR). */
export const paint = (style: Style, text: string, stream: NodeJS.WriteStream = process.stdout): string =>
  styleText(style, text, { stream });

export function print(text: string): void {
  process.stdout.write(`${text}\n`);
}

export function note(text: string): void {
  process.stderr.write(`${text}\n`);
}

// What moves the cursor, reverses text or ends the line: names, URLs and answers of receivers are written by others.
const UNPRINTABLE = /[\p{Cc}\p{Zl}\p{Zp}\u202A-\u202E\u2066-\u2069]/gu;

/** Text of others, on one line, with what would act on the terminal made visible. */
export const printable = (text: string): string =>
  text.replace(UNPRINTABLE, (mark) => `\\u${mark.charCodeAt(0).toString(16).padStart(4, "0")}`);

/** JSON as it came, with the control characters beyond ASCII escaped too, which JSON allows in the clear. */
export const jsonText = (value: unknown, indent?: number): string =>
  JSON.stringify(value, null, indent).replace(/[\u007f-\u009f\u2028\u2029\u202A-\u202E\u2066-\u2069]/g, printable);

/** Whether somebody is there to be asked. */
export const isInteractive = (): boolean => process.stdin.isTTY === true && process.stderr.isTTY === true;

export const ask = (question: string): Promise<string> => readLine(question, { isHidden: false });

/** Asks for what must not be seen: nothing of it is echoed. */
export const askHidden = (question: string): Promise<string> => readLine(question, { isHidden: true });

async function readLine(question: string, { isHidden }: { isHidden: boolean }): Promise<string> {
  // Loaded when they are used: most commands ask nothing, and --help is to be there at once.
  const [{ createInterface }, { Writable }] = await Promise.all([
    import("node:readline/promises"),
    import("node:stream"),
  ]);
  const silence = new Writable({ write: (_chunk, _encoding, done) => done() });
  const output = isHidden ? silence : process.stderr;
  const reader = createInterface({ input: process.stdin, output, terminal: true, historySize: 0 });
  // Asked only now that the terminal echoes nothing by itself: what is typed ahead would be seen.
  if (isHidden) process.stderr.write(question);
  const interrupted = new AbortController();
  const stop = () => interrupted.abort();
  reader.once("SIGINT", stop).once("close", stop);
  try {
    return (await reader.question(isHidden ? "" : question, { signal: interrupted.signal })).trim();
  } catch {
    // As the shell would have ended us, had the terminal not been ours.
    process.stderr.write("\n");
    return process.exit(130);
  } finally {
    if (isHidden) process.stderr.write("\n");
    reader.off("close", stop).close();
  }
}

/**
 * Makes sure that something irreversible is meant.
 * @param isSure `--yes` was given
 * @throws CommandError when nobody is there to be asked, or says no
 */
export async function confirm(what: string, isSure: boolean | undefined): Promise<void> {
  if (isSure) return;
  if (!isInteractive()) throw usageError(`${what} cannot be undone, and nobody is there to be asked.`, "Say --yes.");
  const answer = await ask(`${what} cannot be undone. Sure? [y/N] `);
  if (!/^y(es)?$/i.test(answer)) throw usageError("Nothing was changed.");
}

/** All that comes in on stdin. */
export async function readStdin(): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of process.stdin as AsyncIterable<Buffer>) chunks.push(chunk);
  return Buffer.concat(chunks);
}
