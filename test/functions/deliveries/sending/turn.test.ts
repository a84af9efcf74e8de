import type { Delivery } from "../../../../functions/deliveries/line/delivery.ts";
import { type Turn, turnOf } from "../../../../functions/deliveries/sending/turn.ts";
import type { WebhookHealth } from "../../../../functions/webhooks/webhook/circuit-breaker.ts";

const now = new Date("2026-01-06T00:00:00.000Z");
const iso = (seconds: number) => new Date(now.getTime() + seconds * 1000).toISOString();

const healthy: WebhookHealth = {};
const down = (probeInSeconds: number): WebhookHealth => ({ failing_since: iso(-300), probe_at: iso(probeInSeconds) });
const paused: WebhookHealth = { failing_since: iso(-10), probe_at: iso(60) };

const first = { attempt_count: 0 };
const retry = { attempt_count: 1, attempts: [{ at: iso(-60) }] };
const requested = { ...retry, trigger: "redeliver" };
/** Rejected in two catch-ups, the last of them two minutes less a second ago; it is sent early again after two. */
const rejected = { ...retry, rejections: 2, attempts: [{ at: iso(-119) }] };

test.each<[string, object, number, WebhookHealth, boolean, Turn["kind"]]>([
  [
    "whatever its time and the state of the receiver, one that a user waits for",
    requested,
    600,
    down(60),
    false,
    "asked",
  ],
  ["one whose time has come", retry, 0, healthy, false, "due"],
  ["not yet one whose time has not come", retry, 1, healthy, false, "later"],
  ["a retry before its time in a catch-up", retry, 600, healthy, true, "catch_up"],
  ["no first attempt before its time, which a message may carry", first, 600, healthy, true, "later"],
  ["none that the receiver has just rejected in a catch-up", rejected, 600, healthy, true, "later"],
  ["a probe when that is due, whatever the time of the delivery", retry, 600, down(0), false, "probe"],
  ["no probe before that, also if the delivery is due", retry, -600, down(1), false, "between_probes"],
  ["a probe at once in a catch-up", retry, 600, down(60), true, "probe"],
  ["no probe in a catch-up while the receiver asks for a pause", retry, 600, paused, true, "between_probes"],
  ["no first attempt as a probe before its time", first, 1, down(0), false, "carried"],
  ["a first attempt as a probe when its time has come", first, 0, down(0), false, "probe"],
])("a visit sends %s", (_, delivery, dueInSeconds, webhook, isCatchUp, kind) => {
  const place = { due: iso(dueInSeconds) };
  expect(turnOf(delivery as unknown as Delivery, place, webhook, isCatchUp, now).kind).toBe(kind);
});
