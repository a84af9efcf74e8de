import { figure, interleave, isMet, median, ratios, spread } from "../../bench/harness.ts";

test("interleave runs the variants in turns and rotates their order", async () => {
  const order: string[] = [];
  const variant = (name: string) => async () => order.push(name);
  const samples = await interleave({ a: variant("a"), b: variant("b"), c: variant("c") }, { forMs: 0 });
  expect(order.join("")).toBe("abc" + "bca" + "cab");
  expect(samples).toEqual({ a: [1, 6, 8], b: [2, 4, 9], c: [3, 5, 7] });
});

test("interleave runs rounds until the time is over, and three at least", async () => {
  const wait = () => new Promise<number>((resolve) => setTimeout(() => resolve(1), 10));
  const { wait: long } = await interleave({ wait }, { forMs: 100 });
  expect(long.length).toBeGreaterThan(3);
  expect(long.length).toBeLessThan(12);
  expect((await interleave({ wait }, { forMs: 1 })).wait).toHaveLength(3);
});

test("interleave throws what a variant throws", async () => {
  const wrong = async () => {
    throw new Error("wrong answer");
  };
  await expect(interleave({ wrong }, { forMs: 0 })).rejects.toThrow("wrong answer");
});

test.each<[number[], number, string]>([
  [[3, 1, 2], 2, "2 (1–3)"],
  [[1, 2, 3, 10], 2.5, "2.50 (1–10)"],
  [[1.024, 0.953, 1.078], 1.024, "1.02 (0.953–1.08)"],
])("the median of %j is %p, formatted with its range as %p", (samples, middle, text) => {
  expect(median(samples)).toBe(middle);
  expect(spread(samples)).toBe(text);
});

test("ratios divides round by round and throws for different lengths", () => {
  expect(ratios([2, 9], [1, 3])).toEqual([2, 3]);
  expect(() => ratios([1], [1, 2])).toThrow(RangeError);
});

test.each([
  [1234.5, "1235"],
  [12.345, "12.3"],
  [1.2345, "1.23"],
  [0.0123456, "0.0123"],
  [-0.5, "-0.500"],
  [7, "7"],
  [0, "0"],
  [Number.NaN, "NaN"],
])("%p is formatted as %p", (value, text) => {
  expect(figure(value)).toBe(text);
});

test.each([
  [{ value: 1, bound: 1 }, true],
  [{ value: 1.01, bound: 1 }, false],
  [{ value: 0.9, bound: 0.9, atLeast: true }, true],
  [{ value: 0.89, bound: 0.9, atLeast: true }, false],
  [{ value: Number.NaN, bound: 1 }, false],
])("target %j is met: %p", (target, met) => {
  expect(isMet({ name: "t", ...target })).toBe(met);
});
