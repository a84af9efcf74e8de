import { sign } from "../../bench/sign.ts";

test("our signatures equal those of the libraries, and a small run has all figures", async () => {
  const { tables, targets } = await sign({ forMs: 0 }, 2);
  expect(tables.map(({ rows }) => rows.length)).toEqual([12]);
  expect(targets.map(({ name }) => name)).toContain("sign 300 B / standardwebhooks");
  for (const { value } of targets) expect(value).toBeGreaterThan(0);
});
