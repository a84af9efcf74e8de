import { setTimeout as sleep } from "node:timers/promises";
import { withStarted } from "./child.ts";
import type { Bench, Result } from "./harness.ts";
import { offer, startTraffic } from "./traffic.ts";

/*
 * Publishes every event three times, twice at once and once later, as a pipeline does that retries, and counts the requests at
 * the receiver.
 */

/** `settleMs` is longer than fan-out lets a repeated event wait for the delivery of the first one. */
const full = { perSecond: 20, seconds: 15, settleMs: 45_000 };
const MAX_WAIT_MS = 30_000;

export const bench: Bench = {
  name: "duplicates",
  about: "requests for an event that is published three times",
  run: () => measureDuplicates(full),
};

/** @throws Error when an event is lost, or a second request is sent for one */
export function measureDuplicates({ perSecond, seconds, settleMs }: typeof full): Promise<Result> {
  return withStarted(async (start) => {
    const { service, events, journal } = await startTraffic(start);
    // An event is the same one when all of its fields are.
    const timestamp = new Date().toISOString();
    const publish = (event: string) => events.publish(service.projectId, [event], "deploy.started", timestamp);
    const turn = await offer((event) => Promise.all([publish(event), publish(event)]), { perSecond, seconds });
    const { missing } = await journal.arrivalsOf([turn], MAX_WAIT_MS);
    await Promise.all([...turn.keys()].map(publish));
    while ((await events.depth()) > 0) await sleep(200);
    await sleep(settleMs);
    await journal.update();
    const figures = `${turn.size} events, each published three times: ${missing} did not arrive, ${journal.repeats} requests were repeated`;
    const of = `for each of ${turn.size} events`;
    if (missing > 0 || journal.repeats > 0) throw new Error(`${figures}.`);
    return {
      tables: [],
      targets: [{ name: "requests for a repeated event", value: 1 + journal.repeats / turn.size, bound: 1, of }],
      notes: [`${figures}.`],
    };
  });
}
