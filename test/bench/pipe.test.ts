import { measurePipe, reconcile } from "../../bench/pipe.ts";
import { childProcesses, whileBroken } from "../support/broken-process.ts";

const plan = { loads: [20], secondsEach: 0.5, rounds: 3, warmUpEvents: 5, burst: 5, rejected: 3, samples: 2 };

test("a small run has latencies and hops for every load, and its ledger balances", async () => {
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

test("a start that fails leaves no process", async () => {
  const before = childProcesses();
  await whileBroken(`if (process.argv[1]?.endsWith("in-memory.ts")) process.exit(7)`, () =>
    expect(measurePipe(plan)).rejects.toThrow(/^The process in-memory\.ts .* exited with 7\.$/),
  );
  expect(childProcesses()).toEqual(before);
});

const ok = { succeeded: 2, failed: 1, pending: 1 };
const ledgers: [string, Record<string, number>, string[], string[], boolean][] = [
  ["every row in the expected status", ok, ["a", "b"], ["a", "b"], true],
  ["a missing row", { ...ok, pending: 0 }, ["a", "b"], ["a", "b"], false],
  ["a row in another status", { ...ok, held: 1 }, ["a", "b"], ["a", "b"], false],
  ["a success without a request at the receiver", ok, ["a", "b"], ["a"], false],
  ["a request of another delivery", ok, ["a", "b"], ["a", "c"], false],
];
test.each(ledgers)("the ledger with %s balances only if it should", (_, counts, succeeded, delivered, isBalanced) => {
  const check = () => reconcile(ok, counts, new Set(succeeded), new Set(delivered));
  if (isBalanced) expect(check).not.toThrow();
  else expect(check).toThrow("does not balance");
});
