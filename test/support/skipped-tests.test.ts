import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

/* A skipped test checks nothing, and a focused test skips the others of its file. */

const root = join(import.meta.dirname, "../..");

/** The files that skip tests when a program is not installed. The titles of those tests state it. */
const excluded = ["test/support/optional-program.ts", "test/support/optional-program.test.ts"];

const skipOrFocus = new RegExp(
  [
    String.raw`\.(?:skip|only|todo|failing)\s*(?:\(|\.each\b)`,
    String.raw`\b(?:test|it|describe)\s*(?:\.\w+)*(?:\.|\[["'])(?:skip|only|todo|failing)\b`,
    String.raw`\b(?:xit|xtest|xdescribe|fit|fdescribe)\s*[(.]`,
  ].join("|"),
);

function files(): string[] {
  return readdirSync(join(root, "test"), { recursive: true, encoding: "utf8" })
    .map((name) => join("test", name))
    .filter((path) => /\.(tsx?|[mc]?js)$/.test(path) && !/(^|\/)node_modules\//.test(path));
}

test("no test is skipped or focused", () => {
  const lines = files()
    .filter((path) => !excluded.includes(path))
    .flatMap((path) =>
      readFileSync(join(root, path), "utf8")
        .split("\n")
        .map((line, index) => ({ line, at: `${path}:${index + 1}` })),
    );
  expect(lines.length).toBeGreaterThan(10_000);
  expect(lines.filter(({ line }) => skipOrFocus.test(line)).map(({ at }) => at)).toEqual([]);
});
