import { measureScale } from "../../bench/scale.ts";

test("a small run has the memory of the sender, and calls for each overdue wake-up once", async () => {
  const { tables, targets } = await measureScale({
    ...{ senderMs: 900, senderPoints: 2, due: 400, seedMs: 20_000, sweepMs: 20_000 },
  });
  const [memory, sweep] = tables;
  expect(memory?.rows).toHaveLength(2);
  expect(sweep?.rows[0]?.slice(0, 2)).toEqual([400, 400]);
  expect(targets.find(({ name }) => name === "sweep, workers called in a run")?.value).toBe(400);
  for (const { value } of targets) expect(value).toBeGreaterThan(0);
});
