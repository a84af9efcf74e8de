import { readFileSync } from "node:fs";
import { join } from "node:path";
import { documented, inMarkdown, withTables } from "../../bench/cost.ts";
import { PRICES_SEEN } from "../../bench/prices.ts";
import { readUnits } from "../../bench/units.ts";

const page = readFileSync(join(import.meta.dirname, "../../docs/scale.md"), "utf8");
const units = readUnits();
const tables = documented(units);

/* The tables are computed from bench/units.json and bench/prices.ts. `node bench/cost.ts --write` updates them. */

test.each(tables.map((table) => [table.title, inMarkdown(table)]))(
  "docs/scale.md has the current table: %s",
  (_, table) => {
    expect(page).toContain(`${table}\n`);
  },
);

test("the tables are written to their places, and the page has no other tables of figures", () => {
  const outdated = tables.map((table) => ({ ...table, rows: [] }));
  expect(withTables(withTables(page, outdated), tables)).toBe(page);
  const titles = [...page.matchAll(/^### (.+)$/gm)].map(([, title]) => title);
  expect(titles).toEqual(tables.map(({ title }) => title));
});

test("has the days of the count and of the price lookup", () => {
  expect(page).toContain(units.countedOn);
  expect(page).toContain(PRICES_SEEN);
});
