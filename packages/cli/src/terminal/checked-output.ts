import { fstatSync, readSync, statSync, writeFile } from "node:fs";
import { usageError } from "./exit-codes.ts";
import { printableText } from "./terminal.ts";

/* Output that must not get lost: secrets are shown only once. */

/** Set while printChecked writes. */
let adviceIfLost: string | undefined;

/** Prints a result and waits until it is written. @param advice what to do if it cannot be written */
export async function printChecked(text: string, advice: string): Promise<void> {
  adviceIfLost = advice;
  // After a failed write, the function of watchOutput ends the process.
  await new Promise<void>((resolve) => process.stdout.write(`${printableText(text)}\n`, (error) => error || resolve()));
  adviceIfLost = undefined;
}

/** @throws CommandError when stdout is closed, so that no secret is created that cannot be printed */
export function requireStdout(): void {
  try {
    // In place of a closed stdout, Node opens /dev/null, which can then be read. That of a shell's `> /dev/null` cannot.
    if (fstatSync(1).rdev !== statSync("/dev/null").rdev) return;
    readSync(1, Buffer.alloc(1));
  } catch {
    return;
  }
  throw usageError("stdout is closed: the secret would be lost.", "Nothing was changed. Redirect stdout to a file.");
}

/**
 * Calls a function at the first failed write to stdout. Ignores failed writes to stderr, because they change no result.
 * @param onError receives the code of the error, and the advice if printChecked was writing
 */
export function watchOutput(onError: (code: string, advice: string | undefined) => void): void {
  // Node's own function ignores that a full disk or a quota has cut a text off.
  const isFile = statSync("/dev/stdout", { throwIfNoEntry: false })?.isFile();
  if (isFile) process.stdout._write = (chunk, _encoding, done) => writeFile(1, chunk, done);
  process.stdout.once("error", ({ code = "" }: NodeJS.ErrnoException) => onError(code, adviceIfLost));
  for (const stream of [process.stdout, process.stderr]) stream.on("error", () => {});
}
