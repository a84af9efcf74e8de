import { styleText } from "node:util";
import { printable, printableText } from "../../../packages/cli/src/terminal.ts";

const harmful = ["\u001b", "\u0007", "\r", "\0", "\u007f", "\u009b", "\u2028", "\u2029", "\u202e", "\u2066"];

test.each(harmful)("printable and printableText escape %j", (character) => {
  const escaped = `a\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}[2Jb`;
  expect(printable(`a${character}[2Jb`)).toBe(escaped);
  expect(printableText(`a${character}[2Jb`)).toBe(escaped);
});

test("printable escapes line breaks and styles, printableText keeps them", () => {
  const text = `${styleText("bold", "title", { validateStream: false })}\n\tline`;
  expect(printable(text)).toBe("\\u001b[1mtitle\\u001b[22m\\u000a\\u0009line");
  expect(printableText(text)).toBe(text);
});

test("both leave other text unchanged", () => {
  for (const text of ["", "Grüße, 世界 🚀", "a\\b"])
    expect([printable(text), printableText(text)]).toEqual([text, text]);
});
