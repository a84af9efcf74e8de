import { measureRecovery } from "../../bench/recovery.ts";

test("what waited while a receiver was down arrives after it, of each webhook", async () => {
  const { targets } = await measureRecovery({ waiting: 12, downSeconds: 1 });
  expect(targets.map(({ name }) => name)).toEqual(["one that waits", "all that wait"]);
  for (const { value } of targets) expect(value).toBeGreaterThan(0);
});
