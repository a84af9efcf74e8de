import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { deliveryStatuses } from "../../functions/deliveries/line/delivery.ts";
import { tables } from "../../functions/foundation/manifest/tables.ts";

/* docs/architecture.md knows every state of a delivery, every table, and names files that exist. */

const root = join(import.meta.dirname, "../..");
const page = readFileSync(join(root, "docs/architecture.md"), "utf8");

/** The first cells of the table rows in a section. */
function firstCells(heading: string): string[] {
  const [, rest = ""] = page.split(new RegExp(`^## ${heading}$`, "m"));
  const [section = ""] = rest.split(/^## /m);
  return section
    .split("\n")
    .filter((line) => /^\| (?!---)/.test(line))
    .slice(1)
    .map((line) => line.split("|")[1]?.trim() ?? "");
}

test.each([...deliveryStatuses])("the table of the path of a delivery has the status %s", (status) => {
  expect(firstCells("The path of a delivery").join("\n")).toContain(`\`${status}\``);
});

test("the table of data has every table", () => {
  expect(firstCells("Data").sort()).toEqual(
    Object.values(tables)
      .map(({ name }) => `\`${name}\``)
      .sort(),
  );
});

test("the glossary has about twenty different words", () => {
  const words = firstCells("Glossary");
  expect(new Set(words).size).toBe(words.length);
  expect(words.length).toBeGreaterThanOrEqual(15);
  expect(words.length).toBeLessThanOrEqual(25);
});

test("the files that are named with their room exist", () => {
  const named = [...page.matchAll(/`([a-z-]+\/[\w./-]+\.ts)`/g)].map(([, name = ""]) => name);
  expect(named.length).toBeGreaterThan(15);
  const exists = (name: string) => ["", "functions"].some((folder) => existsSync(join(root, folder, name)));
  expect(named.filter((name) => !exists(name))).toEqual([]);
});
