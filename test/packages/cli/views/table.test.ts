import { jest } from "@jest/globals";
import { fitWidths, relativeTime, shorten, table, widthOf } from "../../../../packages/cli/src/views/table.ts";

/* Tables that fit a terminal. */

const id = "0193f8a0-0000-7000-8000-000000000001";
const url = `https://hooks.example.com/${"a".repeat(60)}`;
const webhooks = (width?: number) =>
  table(["id", "url", "state", "events"], [[id, url, "enabled", "deploy.succeeded deploy.failed"]], width);

let noted: string;
beforeEach(() => {
  noted = "";
  jest.spyOn(process.stderr, "write").mockImplementation((text) => {
    noted += text;
    return true;
  });
});
afterEach(() => jest.restoreAllMocks());

test("a table without a width shows every text in full", () => {
  expect(webhooks()).toContain(url);
  expect(noted).toBe("");
});

test("a table can have 150,000 rows", () => {
  const rows = Array.from({ length: 150_000 }, () => ["a"]);
  expect(table(["id"], rows).split("\n")).toHaveLength(150_001);
});

test("a table that fits is the same with and without a width", () => {
  expect(webhooks(200)).toBe(webhooks());
});

test.each([70, 80, 100, 120, 160])("no line of a table is wider than a terminal of %i columns", (width) => {
  for (const text of webhooks(width).split("\n")) expect(widthOf(text)).toBeLessThanOrEqual(width);
});

test("a long URL is shortened before a column is left out, and the id stays whole", () => {
  const [, row] = webhooks(120).split("\n");
  expect(row).toMatch(
    new RegExp(`^${id}  https://hooks\\.example\\.com/a+…  enabled  deploy\\.succeeded deploy\\.failed$`),
  );
  expect(noted).toBe("");
});

test("columns that do not fit are left out from the end, and named on stderr", () => {
  expect(webhooks(80)).toMatch(new RegExp(`^ID +URL +STATE\n${id}  https://hooks\\.example\\.com/a+…  enabled$`));
  expect(noted).toBe("Not shown on a terminal of 80 columns: events. --json has all.\n");
});

test("the first column stays whole on a terminal that is narrower than it", () => {
  expect(webhooks(20)).toBe(`ID\n${id}`);
});

test.each<[number[], number, number[]]>([
  [[36, 10, 10], 60, [36, 10, 10]],
  [[36, 90, 7], 80, [36, 33, 7]],
  [[36, 50, 50], 100, [36, 30, 30]],
  [[36, 50, 24], 100, [36, 36, 24]],
  [[36, 50, 50], 80, [36, 20, 20]],
  [[36, 50, 50], 79, [36, 41]],
  [[90, 10], 80, [90]],
  [[], 80, [0]],
])("fitWidths of %j in %i columns is %j", (natural, width, fitted) => {
  expect(fitWidths(natural, width)).toEqual(fitted);
});

test.each([
  ["short", 5, "short"],
  ["longer", 5, "long…"],
  ["世界世界", 5, "世界…"],
  ["世界世界", 4, "世…"],
  ["👩‍💻👩‍💻👩‍💻", 5, "👩‍💻👩‍💻…"],
])("shorten %s to %i columns gives %s", (text, width, expected) => {
  expect(shorten(text, width)).toBe(expected);
});

const [minute, day] = [60, 86_400];
test.each([
  [0, "now"],
  [-59, "59 s ago"],
  [2 * minute - 1, "in 2 min"],
  [1 - 2 * minute, "1 min ago"],
  [30 * day, "in 30 d"],
  [-30 * day, "30 d ago"],
  [-30 * day - 1, "2026-10-22"],
])("a time %i s from now is shown as %s", (seconds, text) => {
  const now = new Date("2026-11-21T12:00:00Z");
  expect(relativeTime(new Date(now.getTime() + seconds * 1000).toISOString(), now)).toBe(text);
});
