import { readFileSync } from "node:fs";
import { join } from "node:path";
import { documented, inMarkdown, withTables } from "../../bench/cost.ts";
import { PRICES_SEEN } from "../../bench/prices.ts";
import { readUnits } from "../../bench/units.ts";

const read = (path: string) => readFileSync(join(import.meta.dirname, "../..", path), "utf8");
const page = read("docs/scale.md");
const units = readUnits();
const tables = Object.entries(documented(units));

/* The tables are computed from bench/units.json and bench/prices.ts. `node bench/cost.ts --write` updates them. */

test.each(tables.flatMap(([path, each]) => each.map((table) => [path, table.title, inMarkdown(table)])))(
  "%s has the current table: %s",
  (path, _, table) => {
    expect(read(path)).toContain(`${table}\n`);
  },
);

test.each(tables)("the tables are written to their places in %s", (path, each) => {
  const outdated = each.map((table) => ({ ...table, rows: [] }));
  expect(withTables(withTables(read(path), outdated), each)).toBe(read(path));
});

test.each(tables)("%s has no other tables of figures", (path, each) => {
  const titles = [...read(path).matchAll(/^### (.+)$/gm)].map(([, title]) => title);
  expect(titles).toEqual(each.map(({ title }) => title));
});

test("docs/scale.md is a reference of this service: the simulation and other services are in bench/", () => {
  expect(page).not.toMatch(/^#+ (Hosted services|Simulat)/m);
});

test("has the days of the count and of the price lookup", () => {
  expect(page).toContain(units.countedOn);
  expect(page).toContain(PRICES_SEEN);
});
