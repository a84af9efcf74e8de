import { exponent } from "../../bench/scale.ts";

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
