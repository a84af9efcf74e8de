import { readFileSync } from "node:fs";
import { join } from "node:path";
import { documentedNames, type Figures, promises, withFigures } from "../../bench/promises.ts";

const document = readFileSync(join(import.meta.dirname, "../../docs/promises.md"), "utf8");

test("docs/promises.md has a row and a sentence for every promise, and no others", () => {
  const names = promises.map(({ name }) => name);
  expect(documentedNames(document)).toEqual(names);
  const explained = [...document.matchAll(/^- .*?\(((?:`[\w-]+`(?:, )?)+)\)/gm)].flatMap(([, list = ""]) =>
    [...list.matchAll(/`([\w-]+)`/g)].map(([, name]) => name),
  );
  expect(explained.toSorted()).toEqual(names.toSorted());
});

test("writing figures replaces the rows that were measured and keeps the others", () => {
  const figures: Figures = new Map([
    ["nothing-lost", { name: "nothing-lost", value: 0, bound: 0, of: "of 60 events" }],
    ["verification-from-cache", { name: "verification-from-cache", value: 130.4, bound: 50, unit: "µs" }],
  ]);
  const written = withFigures(document, figures, "2026-12-01");
  expect(written).toContain("| `nothing-lost` | 0 of 60 events | ≤ 0 | ok | 2026-12-01 |");
  expect(written).toContain("| `verification-from-cache` | 130 µs | ≤ 50 µs | **MISS** | 2026-12-01 |");
  expect(documentedNames(written)).toEqual(documentedNames(document));
  expect(withFigures(written, new Map(), "2026-12-02")).toBe(written);
  expect(() => withFigures("nothing", new Map(), "")).toThrow("no block of figures");
});
