import { balance, measureCutover, type Plan, resultOf } from "../../bench/cutover.ts";

/* Moving in: imports, shadow mode and the switch to live, while the service is killed. */

const plan: Plan = {
  webhooks: 10,
  webhooksPerProject: 5,
  keys: 40,
  keysPerUser: 20,
  activeProjects: 2,
  eventsPerSecond: 5,
  keyUsers: 2,
  minUpMs: 300,
  maxUpMs: 1_000,
  phaseMs: 1_500,
  maxQuietMs: 400_000,
};

test("no event is lost, none is sent in shadow mode, and no imported key is rejected while the service is killed", async () => {
  const { targets, tables } = await measureCutover(plan);
  expect(targets).toMatchObject([{ name: "lost, sent in shadow mode, or rejected", value: 0, bound: 0 }]);
  const [kills] = tables[1]?.rows[0] ?? [];
  // One during each import, and others during the cutover.
  expect(kills).toBeGreaterThan(2);
}, 900_000);

describe("the ledger of a cutover", () => {
  const webhook = {
    ...{ id: "w", path: "/ok/0", switchBeganAt: 100, liveAt: 110 },
    events: new Map([
      ["before", 50],
      ["after", 120],
    ]),
  };
  const arrival = { at: 121, path: "/ok/0", id: "d-after", event: "after" };
  const log = { "d-before": "shadowed", "d-after": "succeeded" };
  const none = { deliveries: 2, sent: 1, shadowed: 1, repeats: 0, lost: 0, early: 0 };

  test.each<[string, { arrivals?: (typeof arrival)[]; statuses?: Record<string, string> }, object]>([
    ["all as promised", {}, {}],
    ["a request twice", { arrivals: [arrival, arrival] }, { repeats: 1 }],
    ["a request before the switch", { arrivals: [arrival, { ...arrival, at: 99 }] }, { repeats: 1, early: 1 }],
    ["a delivery that is not in the log", { statuses: { "d-after": "succeeded" } }, { shadowed: 0, lost: 1 }],
    ["a delivery that waits", { statuses: { ...log, "d-before": "pending" } }, { shadowed: 0, lost: 1 }],
    [
      "a later event that was shadowed",
      { arrivals: [], statuses: { ...log, "d-after": "shadowed" } },
      { sent: 0, shadowed: 2, lost: 1 },
    ],
    ["a success in the log that did not arrive", { arrivals: [] }, { sent: 0, lost: 1 }],
  ])("counts %s", (_, { arrivals = [arrival], statuses = log }, change) => {
    expect(balance([webhook], arrivals, new Map([["w", statuses]]))).toEqual({ ...none, ...change });
  });

  const measured = { ...none, accepted: 5, rejected: 0, kills: 1, webhookSeconds: 1, keySeconds: 1 };
  test.each([
    ["a lost delivery", { lost: 1 }],
    ["a request in shadow mode", { early: 1 }],
    ["a rejected key", { rejected: 1 }],
    ["no delivery after the switch", { sent: 0 }],
    ["no delivery in shadow mode", { shadowed: 0 }],
    ["no kill", { kills: 0 }],
  ])("is a wrong answer with %s", (_, change) => {
    expect(() => resultOf(plan, measured)).not.toThrow();
    expect(() => resultOf(plan, { ...measured, ...change })).toThrow("The cutover is not as promised");
  });
});
