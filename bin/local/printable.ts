/* Text on a terminal. Messages of a queue, responses and reasons are written by others. */

// Control characters, line separators and bidirectional overrides.
const UNPRINTABLE = /[\p{Cc}\p{Zl}\p{Zp}\u202A-\u202E\u2066-\u2069]/gu;
// A style of `styleText`, or a character that may act on the terminal.
// biome-ignore lint/suspicious/noControlCharactersInRegex: styles begin with ESC
const STYLE_OR_UNPRINTABLE = /\u001b\[\d+m|(?![\n\t])[\p{Cc}\p{Zl}\p{Zp}\u202A-\u202E\u2066-\u2069]/gu;

/** Escapes the characters of untrusted text that would act on the terminal, line breaks included. */
export const printable = (text: string): string =>
  text.replace(UNPRINTABLE, (mark) => `\\u${mark.charCodeAt(0).toString(16).padStart(4, "0")}`);

/** Escapes the same characters in the text of a program, except its line breaks, tabs and styles. */
export const printableText = (text: string): string =>
  text.replace(STYLE_OR_UNPRINTABLE, (found) => (found.length > 1 ? found : printable(found)));
