import { jest } from "@jest/globals";
import { confirm, jsonText, note, print, printable, styled } from "../../../../packages/cli/src/terminal/terminal.ts";

/* What text of others may do to a terminal. */

const harmful = [
  ["ESC, which starts escape sequences", "\u001b"],
  ["BEL", "\u0007"],
  ["CR, which overwrites the line", "\r"],
  ["a line break", "\n"],
  ["DEL", "\u007f"],
  ["CSI, an 8-bit escape sequence", "\u009b"],
  ["the line separator", "\u2028"],
  ["the paragraph separator", "\u2029"],
  ["the right-to-left override", "\u202e"],
  ["the left-to-right isolate", "\u2066"],
  ["the pop directional isolate", "\u2069"],
  ["the right-to-left mark", "\u200f"],
  ["a space of no width", "\u200b"],
  ["a byte order mark", "\ufeff"],
  ["a filler", "\u3164"],
  ["private use", "\ue000"],
  ["a tag, which only an assistant reads", "\u{e0041}"],
  ["a variation selector", "\u{e0101}"],
] as const;

const codesOf = (text: string) =>
  Array.from({ length: text.length }, (_, index) => `\\u${text.charCodeAt(index).toString(16).padStart(4, "0")}`).join(
    "",
  );

test.each(harmful)("printable escapes %s", (_, character) => {
  expect(printable(`a${character}b`)).toBe(`a${codesOf(character)}b`);
});

test.each(harmful)("jsonText escapes %s, and stays JSON", (_, character) => {
  const text = jsonText({ [character]: character });
  expect(text).not.toContain(character);
  expect(JSON.parse(text)).toEqual({ [character]: character });
});

test("printable leaves other text unchanged", () => {
  for (const text of ["", "Grüße, 世界 🚀", "a\\b", "שלום", "می\u200cخواهم", "👩🏽‍🚀 ❤️"])
    expect(printable(text)).toBe(text);
});

describe.each([
  ["print", print, process.stdout],
  ["note", note, process.stderr],
] as const)("%s", (_name, write, stream) => {
  function written(text: string): string {
    const spy = jest.spyOn(stream, "write").mockReturnValue(true);
    write(text);
    const output = spy.mock.calls.map(([chunk]) => String(chunk)).join("");
    spy.mockRestore();
    return output;
  }

  test.each(harmful.filter(([, character]) => character !== "\n"))("escapes %s", (_, character) => {
    expect(written(`a${character}[2Jb`)).toBe(`a${codesOf(character)}[2Jb\n`);
  });

  test("keeps line breaks, tabs and styles, and no other escape sequence", () => {
    process.env.FORCE_COLOR = "1";
    const text = `${styled("bold", "title")}\n\tline`;
    delete process.env.FORCE_COLOR;
    expect(written(text)).toBe(`${text}\n`);
    for (const sequence of ["\u001b[8mhidden", "\u001b[1;5mx", "\u001b]0;title\u0007", "\u001b[H"]) {
      expect(written(sequence)).not.toContain("\u001b");
    }
  });
});

test.each(["stdin", "stderr"] as const)("confirm does not ask when only %s is a terminal", async (name) => {
  const streams = { stdin: process.stdin, stderr: process.stderr };
  for (const [key, stream] of Object.entries(streams)) {
    jest.spyOn(process, key as typeof name, "get").mockReturnValue({ ...stream, isTTY: key === name } as never);
  }
  const asked = confirm("Delete it", false);
  jest.restoreAllMocks();
  await expect(asked).rejects.toMatchObject({ exitCode: 2, advice: expect.stringContaining("--yes") });
});
