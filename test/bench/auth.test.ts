import { auth } from "../../bench/auth.ts";

test("both verifiers agree, and a small run has all figures", async () => {
  const { tables, targets } = await auth({ forMs: 0 }, 5);
  expect(tables[0]?.rows.map(([name]) => name)).toEqual(["authorizer", "jsonwebtoken"]);
  expect(targets).toEqual([{ name: "jwt / jsonwebtoken", value: expect.any(Number), bound: 0.5 }]);
  expect(targets[0]?.value).toBeGreaterThan(0);
});
