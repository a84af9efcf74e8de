import type { Client, DeploymentEvent, EventName } from "../../../client/src/client.ts";
import { stringifyExactly } from "../../../client/src/exact-json.ts";
import { eachNewEvent } from "../commands/follow-events.ts";
import { exitCodes } from "../terminal/exit-codes.ts";
import { jsonText, note, print, printable, styled } from "../terminal/terminal.ts";
import { type Destination, type ForwardResult, forwardDelivery, forwardLines } from "./forward.ts";
import { type LocalDelivery, localDeliveryId } from "./signed-delivery.ts";

/* Shows the deployment events of a project as they happen, and forwards them. Needs no webhook and no public address. */

interface FollowOptions {
  /** Undefined = all. */
  events: EventName[] | undefined;
  /** Undefined forwards none. */
  destination: Destination | undefined;
  /** Stops after this number of events, with exit code 1 if one was not forwarded with success. Undefined: until stopped. */
  count: number | undefined;
  json: boolean;
  signal: AbortSignal;
}

/** As many events as a page has. A newer one is not taken for new, also if the feed returns it again. */
const KNOWN_AT_START = 100;

/**
 * Follows the events from now on. Each is forwarded once, after the response to the one before: nothing is sent again.
 * @throws AbortError when the signal is aborted
 * @throws ApiError when a retry cannot help
 */
export async function follow(api: Client, projectId: string, options: FollowOptions): Promise<void> {
  const { events, destination, count, json, signal } = options;
  const latest = await api.listEvents(projectId, { limit: KNOWN_AT_START });
  const target = destination && `, forwarding to ${destination.url.href}`;
  note(`Listening to the deployment events of the project${target ?? ""}. Press Ctrl-C to stop.`);
  let shown = 0;
  for await (const event of eachNewEvent(api, projectId, { query: {}, latest, signal })) {
    if (events && !events.includes(event.event)) continue;
    const delivery = deliveryOf(event);
    const forwarded = destination ? await forwardDelivery(delivery, destination, signal) : null;
    print(json ? jsonText({ ...event, forwarded }) : formatEvent(event, delivery, forwarded));
    shown += 1;
    if (count === undefined) continue;
    if (forwarded !== null && forwarded.error_code !== null) process.exitCode = exitCodes.failed;
    if (shown === count) return;
  }
}

/** Returns what a receiver gets. The feed has the payload as it was stored: its bytes are those of a delivery. */
export const deliveryOf = ({ id, event, payload }: DeploymentEvent): LocalDelivery => ({
  id: localDeliveryId(id),
  event,
  body: Buffer.from(stringifyExactly(payload)),
});

function formatEvent(event: DeploymentEvent, delivery: LocalDelivery, forwarded: ForwardResult | null): string {
  return [
    `\n${styled("dim", printable(event.timestamp))}  ${styled("bold", printable(event.event))}`,
    ...(forwarded === null ? [] : [`delivery             ${delivery.id}`, ...forwardLines(forwarded)]),
    jsonText(event.payload, 2),
  ].join("\n");
}
