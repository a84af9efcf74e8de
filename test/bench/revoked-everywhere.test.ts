import {
  type Change,
  lateUses,
  measureRevokedEverywhere,
  type Plan,
  resultOf,
} from "../../bench/revoked-everywhere.ts";

const plan: Plan = {
  callers: 2,
  staleSeconds: 1,
  ofEachKind: 1,
  // The time until they are in the caches depends on the machine; verifier.test.ts tests the expiry.
  expiring: 0,
  unchanged: 2,
  changeForMs: 500,
};

test("no caller uses the result of a revoked credential for more than a second, with the feed and without", async () => {
  const { targets } = await measureRevokedEverywhere(plan);
  expect(targets[0]).toMatchObject({ name: "used too long after a revocation", value: 0, of: "of 14 in 2 caches" });
});

describe("the counts", () => {
  const change: Change = { kind: "deleted", id: "a", begunAt: 10_000, endedAt: 10_050, isStillValid: false };
  const use = { id: "a", askedAt: 9_000, lastAt: 15_050 };

  test.each([
    ["at the bound", use, change, 0],
    ["after the bound", { ...use, lastAt: 15_051 }, change, 1],
    [
      "of a later result, of a credential that must be rejected",
      { ...use, askedAt: 12_000, lastAt: 15_051 },
      change,
      1,
    ],
    [
      "of a later result, of one that stays valid",
      { ...use, askedAt: 10_000, lastAt: 15_051 },
      { ...change, isStillValid: true },
      0,
    ],
    ["of the old result of one that stays valid", { ...use, lastAt: 15_051 }, { ...change, isStillValid: true }, 1],
    ["of another credential", { ...use, id: "b", lastAt: 15_051 }, change, 0],
  ])("have a use %s as it is", (_title, used, of, late) => {
    expect(lateUses([used], of, 5_000)).toHaveLength(late);
  });

  const caller = { uses: new Map([["a", use]]), hits: [3] };
  const late = { ...caller, uses: new Map([["a", { ...use, lastAt: 15_051 }]]) };

  test("are a result of 0 uses, or a wrong answer", () => {
    expect(resultOf([change], [caller], 5_000).targets).toMatchObject([
      { value: 0, bound: 0, of: "of 1 in 1 caches" },
      { value: 3, bound: 50 },
    ]);
    expect(() => resultOf([change], [caller, late], 5_000)).toThrow("used for too long");
    const unused = { ...caller, uses: new Map() };
    expect(() => resultOf([change], [caller, unused], 5_000)).toThrow("not accepted before");
  });
});
