import { measurePipe } from "../../bench/pipe.ts";

const plan = { loads: [20], roundSeconds: 0.5, rounds: { forMs: 0 }, warmUpSeconds: 0.2 };

test("a small run has latencies for every load, and the throughput", async () => {
  const { tables, targets } = await measurePipe(plan);
  expect(tables.map(({ rows }) => rows.length)).toEqual([1, 1]);
  expect(targets.map(({ name }) => name)).toEqual([
    "p50 / in memory at 20 a second",
    "p50 / same calls at 20 a second",
    "p99 / in memory at 20 a second",
    "events per second / same calls",
  ]);
  for (const { value } of targets) expect(value).toBeGreaterThan(0);
});
