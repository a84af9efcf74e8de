import { measureKills, type Plan, resultOf } from "../../bench/kills.ts";

const plan: Plan = {
  forMs: 120_000,
  kills: 3,
  events: 60,
  minUpMs: 100,
  maxUpMs: 600,
  responseMs: 20,
  publishPauseMs: 200,
  maxQuietMs: 60_000,
};

test("no event is lost when the service is killed three times while it delivers", async () => {
  const { targets, tables } = await measureKills(plan);
  expect(targets[0]).toEqual({ name: "events lost", value: 0, bound: 0 });
  const [kills, events, lost] = tables[0]?.rows[0] ?? [];
  expect({ kills, lost }).toEqual({ kills: 3, lost: 0 });
  expect(events).toBeGreaterThan(0);
}, 180_000);

describe("the ledger of kills", () => {
  const arrival = (event: string, at = 0) => ({ at, path: "/after/20/kills", id: event, event });
  const measured = {
    events: new Set(["a", "b"]),
    arrivals: [arrival("a", 990), arrival("b", 100), arrival("a", 2_000)],
    killedAt: [1_000],
    logged: { byStatus: { succeeded: 2 }, attempts: 2 },
  };

  test("counts repeated requests, requests open at a kill and requests that are not in the log", () => {
    expect(resultOf(plan, measured).tables[0]?.rows).toEqual([[1, 2, 0, 3, 1, 1, 1, 1]]);
  });

  test.each([
    ["an event that did not arrive", { arrivals: [arrival("a")] }],
    ["an event that was never published", { arrivals: [...measured.arrivals, arrival("c")] }],
    ["a delivery that is still pending", { logged: { byStatus: { succeeded: 1, pending: 1 }, attempts: 2 } }],
    ["a delivery that is not in the log", { logged: { byStatus: { succeeded: 1 }, attempts: 1 } }],
    ["a service that was never killed", { killedAt: [] }],
    ["more attempts than requests", { logged: { byStatus: { succeeded: 2 }, attempts: 4 } }],
  ])("fails for %s", (_, change) => {
    expect(() => resultOf(plan, { ...measured, ...change })).toThrow(/does not balance|more attempts|was not killed/);
  });
});
