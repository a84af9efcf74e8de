import { measureKills, type Plan, resultOf } from "../../bench/kills.ts";

const plan: Plan = {
  forMs: 120_000,
  kills: 3,
  events: 60,
  minUpMs: 100,
  maxUpMs: 600,
  responseMs: 20,
  publishPauseMs: 200,
  maxQuietMs: 150_000,
};

test("no event is lost when the service is killed three times while it delivers", async () => {
  const { targets, tables } = await measureKills(plan);
  expect(targets[0]).toMatchObject({ name: "events lost", value: 0, bound: 0 });
  const [kills, events, lost] = tables[0]?.rows[0] ?? [];
  expect({ kills, lost }).toEqual({ kills: 3, lost: 0 });
  expect(events).toBeGreaterThan(0);
});

describe("the ledger of kills", () => {
  const both = new Set(["a", "b"]);
  const measured = {
    ...{ events: both, arrived: both, repeats: 1, kills: 1 },
    logged: { byStatus: { succeeded: 2 }, attempts: 2 },
  };

  test("counts repeated requests and requests that are not in the log", () => {
    expect(resultOf(measured).tables[0]?.rows).toEqual([[1, 2, 0, 3, 1, 1, 1]]);
  });

  test.each([
    ["an event that did not arrive", { arrived: new Set(["a"]) }],
    ["an event that was never published", { arrived: new Set(["a", "b", "c"]) }],
    ["a delivery that is still pending", { logged: { byStatus: { succeeded: 1, pending: 1 }, attempts: 2 } }],
    ["a delivery that is not in the log", { logged: { byStatus: { succeeded: 1 }, attempts: 1 } }],
    ["a service that was never killed", { kills: 0 }],
    ["more attempts than requests", { logged: { byStatus: { succeeded: 2 }, attempts: 4 } }],
  ])("fails for %s", (_, change) => {
    expect(() => resultOf({ ...measured, ...change })).toThrow(/does not balance|more attempts|was not killed/);
  });
});
