import { sign } from "../../bench/sign.ts";

test("our signatures equal those of the library, and a small run has all figures", async () => {
  const { tables, targets } = await sign({ forMs: 0 }, 2);
  expect(tables.map(({ rows }) => rows.length)).toEqual([2, 2, 2]);
  expect(targets[0]?.name).toBe("sign 300 bytes / standardwebhooks");
  for (const { value } of targets) expect(value).toBeGreaterThan(0);
});
