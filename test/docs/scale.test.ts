import { readFileSync } from "node:fs";
import { join } from "node:path";
import { documented, inMarkdown } from "../../bench/cost.ts";
import { PRICES_SEEN } from "../../bench/prices.ts";
import { readUnits } from "../../bench/units.ts";

const page = readFileSync(join(import.meta.dirname, "../../docs/scale.md"), "utf8");
const units = readUnits();

/* The tables of docs/scale.md are computed from bench/units.json and bench/prices.ts. `node bench/cost.ts --write` updates them. */

test.each(documented(units).map((table) => [table.title, inMarkdown(table)]))(
  "has the current table: %s",
  (_, table) => {
    expect(page).toContain(`${table}\n`);
  },
);

test("has no other tables of figures", () => {
  const titles = [...page.matchAll(/^### (.+)$/gm)].map(([, title]) => title);
  expect(titles).toEqual(documented(units).map(({ title }) => title));
});

test("has the days of the count and of the price lookup", () => {
  expect(page).toContain(units.countedOn);
  expect(page).toContain(PRICES_SEEN);
});

test("has no link to a section that does not exist", () => {
  const anchorOf = (heading: string) =>
    heading
      .toLowerCase()
      .replaceAll(/[^\w\- ]/g, "")
      .replaceAll(" ", "-");
  const anchors = [...page.matchAll(/^#+ (.+)$/gm)].map(([, heading = ""]) => anchorOf(heading));
  for (const [, anchor] of page.matchAll(/\]\(#([^)]+)\)/g)) expect(anchors).toContain(anchor);
});
