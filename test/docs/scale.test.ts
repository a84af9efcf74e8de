import { readFileSync } from "node:fs";
import { join } from "node:path";
import { documented, inMarkdown, readUnits } from "../../bench/cost.ts";
import { PRICES_SEEN } from "../../bench/prices.ts";

const page = readFileSync(join(import.meta.dirname, "../../docs/scale.md"), "utf8");
const units = readUnits();

/* The figures of docs/scale.md follow from bench/units.json and bench/prices.ts; `node bench/cost.ts --write` puts them there. */

test.each(documented(units).map((table) => [table.title, inMarkdown(table)]))("docs/scale.md: %s", (_, table) => {
  expect(page).toContain(`${table}\n`);
});

test("there are no other tables of figures", () => {
  const titles = [...page.matchAll(/^### (.+)$/gm)].map(([, title]) => title);
  expect(titles).toEqual(documented(units).map(({ title }) => title));
});

test("the page tells when it was counted and when the prices were looked up", () => {
  expect(page).toContain(units.countedOn);
  expect(page).toContain(PRICES_SEEN);
});
