import { jest } from "@jest/globals";
import { measurePipe, reconcile } from "../../bench/pipe.ts";

jest.setTimeout(60_000);

test("balances the ledger, and the hops are there for every load", async () => {
  const plan = { loads: [20], secondsEach: 0.5, rounds: 3, warmUpEvents: 5, burst: 5, refused: 3, samples: 2 };
  const { tables, targets } = await measurePipe(plan);
  const [latency, hops, bursts, ledger] = tables.map(({ rows }) => rows);
  expect(latency).toHaveLength(1);
  expect(bursts).toHaveLength(1);
  const [load, ...prices] = hops?.[0] ?? [];
  expect(load).toBe(20);
  expect(prices).toHaveLength(6);
  for (const price of prices) expect(price).toBeGreaterThan(0);
  // 5 to warm up, 3 rounds of 10, 3 bursts of 5.
  expect(ledger).toEqual([[55, 50, 2, 3, expect.any(Number)]]);
  expect(targets.map(({ name }) => name)).toEqual(["pipe.p50@20"]);
});

const ok = { succeeded: 2, failed: 1, pending: 1 };
const ledgers: [string, Record<string, number>, string[], string[], boolean][] = [
  ["every row where it should be", ok, ["a", "b"], ["a", "b"], true],
  ["a row that is missing", { ...ok, pending: 0 }, ["a", "b"], ["a", "b"], false],
  ["a row of another status", { ...ok, held: 1 }, ["a", "b"], ["a", "b"], false],
  ["a success that no receiver has seen", ok, ["a", "b"], ["a"], false],
  ["a success that was another delivery", ok, ["a", "b"], ["a", "c"], false],
];
test.each(ledgers)("a ledger with %s", (_, counts, succeeded, delivered, isBalanced) => {
  const judge = () => reconcile(ok, counts, new Set(succeeded), new Set(delivered));
  if (isBalanced) expect(judge).not.toThrow();
  else expect(judge).toThrow("does not balance");
});
