import type { Delivery } from "../../../../functions/deliveries/line/delivery.ts";
import { type Turn, turnOf } from "../../../../functions/deliveries/sending/turn.ts";

const now = new Date("2026-11-21T12:00:00.000Z");
const at = (seconds: number) => new Date(now.getTime() + 1_000 * seconds);
const iso = (seconds: number) => at(seconds).toISOString();

const first = { attempt_count: 0 };
const retry = { attempt_count: 1, attempts: [{ at: iso(-40) }] };
const asked = { ...retry, trigger: "redeliver" };
const healthy = {};
/** A minute of failures: the circuit is open, and a probe is sent every 30 seconds. */
const down = (probeInSeconds: number) => ({ failing_since: iso(-60), probe_at: iso(probeInSeconds) });
const probe = (inSeconds: number): Turn => ({ kind: "probe", probeAt: at(inSeconds), nextProbeAt: iso(30) });
const betweenProbes: Turn = { kind: "between_probes", probeAt: at(10) };

describe.each<[receiver: string, webhook: object, delivery: string, row: object, turns: Turn["kind"][] | Turn[]]>([
  // Due now, due later, due now in a catch-up, due later in a catch-up.
  ["is healthy", healthy, "a first attempt", first, ["due", "later", "due", "later"]],
  ["is healthy", healthy, "a retry", retry, ["due", "later", "due", "catch_up"]],
  ["is healthy", healthy, "a redelivery", asked, ["asked", "asked", "asked", "asked"]],
  ["has failed for 29 seconds", { failing_since: iso(-29) }, "a retry", retry, ["due", "later", "due", "catch_up"]],
  ["asks for a pause", { ...down(10), failing_since: iso(-9) }, "a retry", retry, Array(4).fill(betweenProbes)],
  ["may be probed", down(0), "a first attempt", first, ["probe", "carried", "probe", "carried"]],
  ["may be probed", down(0), "a retry", retry, [probe(0), probe(0), probe(0), probe(0)]],
  ["may be probed", down(0), "a redelivery", asked, ["asked", "asked", "asked", "asked"]],
  ["was probed", down(10), "a first attempt", first, ["between_probes", "carried", "probe", "carried"]],
  ["was probed", down(10), "a retry", retry, [betweenProbes, betweenProbes, probe(10), probe(10)]],
  ["was probed", down(10), "a redelivery", asked, ["asked", "asked", "asked", "asked"]],
])("a receiver that %s", (_, webhook, name, row, turns) => {
  test.each([
    ["due", 0, false, turns[0]],
    ["due in a second", 1, false, turns[1]],
    ["due, in a catch-up", 0, true, turns[2]],
    ["due in a second, in a catch-up", 1, true, turns[3]],
  ])(`${name} that is %s`, (_, dueInSeconds, isCatchUp, expected) => {
    const turn = turnOf(row as Delivery, { due: iso(dueInSeconds) }, webhook, isCatchUp, now);
    expect(typeof expected === "string" ? turn.kind : turn).toEqual(expected);
  });
});

test.each([
  [0, 0],
  [1, 60],
  [2, 120],
  [3, 240],
])("after %i rejections, a catch-up sends a delivery again no sooner than after %i seconds", (rejections, seconds) => {
  const kindAfter = (elapsed: number) => {
    const row = { attempt_count: 1, attempts: [{ at: iso(-elapsed) }], rejections } as Delivery;
    return turnOf(row, { due: iso(1) }, healthy, true, now).kind;
  };
  expect(kindAfter(seconds)).toBe("catch_up");
  if (seconds > 0) expect(kindAfter(seconds - 1)).toBe("later");
});
