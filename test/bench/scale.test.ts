import { exponent } from "../../bench/scale.ts";

const sizes = [1, 10, 100, 1_000];
const grownBy = (cost: (size: number) => number) => exponent(sizes.map((size) => ({ size, cost: cost(size) })));

test.each<[string, (size: number) => number, number]>([
  ["what stays as it is", () => 42, 0],
  ["what grows with its size", (size) => 3 * size, 1],
  ["what grows with the square of it", (size) => 0.1 * size ** 2, 2],
  ["what shrinks", (size) => 7 / size, -1],
])("the exponent of %s is told from its figures", (_, cost, expected) => {
  expect(grownBy(cost)).toBeCloseTo(expected, 4);
});

test("a constant beside what grows keeps the exponent below one", () => {
  const fitted = grownBy((size) => 5 + size);
  expect(fitted).toBeGreaterThan(0.5);
  expect(fitted).toBeLessThan(1);
});
