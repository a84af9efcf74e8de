import { evaluate } from "./metric-math.ts";

const data = (values: Record<string, number>) => ({ metricOf: (id: string) => values[id], quotaOf: () => 1_000 });

test.each<[string, Record<string, number>, number | undefined]>([
  ["1 + 2 * 3", {}, 7],
  ["(1 + 2) * 3 - 4 / 2", {}, 7],
  ["8 - 2 - 1", {}, 5],
  ["IF(a > 0 AND b < 1 OR c >= 5, 10, 20)", { a: 1, b: 0, c: 0 }, 10],
  ["IF(a > 0 AND b < 1 OR c >= 5, 10, 20)", { a: 1, b: 1, c: 4 }, 20],
  ["100 * a / SERVICE_QUOTA(b)", { a: 50 }, 5],
  ["a + b", { a: 1 }, 1],
  ["a + b", {}, undefined],
  ["IF(a < 1, 10, 20)", {}, undefined],
  ["IF(a > 0 AND b < 1, 10, 20)", { a: 1 }, undefined],
  ["IF(a > 0 AND (b + 0 * a) < 1, 10, 20)", { a: 1 }, 10],
  ["IF(a < 1, 10, 20) + 1", {}, 1],
])("%s with %j is %j", (expression, values, result) => {
  expect(evaluate(expression, data(values))).toBe(result);
});

test.each(["FILL(a, 0)", "a b", "IF(a, 1"])("%s is rejected", (expression) => {
  expect(() => evaluate(expression, data({ a: 1, b: 1 }))).toThrow(expression);
});
