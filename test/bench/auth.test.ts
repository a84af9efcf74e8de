import { auth } from "../../bench/auth.ts";

test("all verifiers agree, a key costs one read, and a small run has all figures", async () => {
  const { tables, targets } = await auth(3, 5);
  expect(tables.map(({ rows }) => rows.length)).toEqual([5, 2]);
  expect(targets).toEqual([{ name: "jwt / jsonwebtoken", value: expect.any(Number), bound: 0.5 }]);
  expect(targets[0]?.value).toBeGreaterThan(0);
});
