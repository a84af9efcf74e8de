import { exponent, measureScale } from "../../bench/scale.ts";

const sizes = [1, 10, 100, 1_000];
const grownBy = (cost: (size: number) => number) => exponent(sizes.map((size) => ({ size, cost: cost(size) })));

test.each<[string, (size: number) => number, number]>([
  ["a constant cost", () => 42, 0],
  ["a linear cost", (size) => 3 * size, 1],
  ["a quadratic cost", (size) => 0.1 * size ** 2, 2],
  ["a cost that falls with size", (size) => 7 / size, -1],
])("fits the exponent of %s", (_, cost, expected) => {
  expect(grownBy(cost)).toBeCloseTo(expected, 4);
});

test("a constant plus a linear cost has an exponent below one", () => {
  const fitted = grownBy((size) => 5 + size);
  expect(fitted).toBeGreaterThan(0.5);
  expect(fitted).toBeLessThan(1);
});

test("a small run has points for every series, and sweeps all due rows once", async () => {
  const plan = {
    parked: [2, 4],
    log: [10, 20],
    senderMs: 900,
    senderPoints: 2,
    due: 400,
    seedMs: 20_000,
    sweepMs: 20_000,
  };
  const { tables, targets } = await measureScale(plan);
  expect(tables.map(({ rows }) => rows.length)).toEqual([2, 2, 2, 2, 1]);
  expect(tables[4]?.rows[0]?.slice(0, 2)).toEqual([400, 400]);
  expect(targets.find(({ name }) => name === "sweep, writes per row")?.value).toBe(3);
});
