import {
  compareFields,
  type EventFilter,
  receives,
  type Subscription,
} from "../../../functions/webhooks/event-filter.ts";
import type { Client, DeploymentEvent } from "./client.ts";

export type { EventFilter };

/* The filter of a webhook: as text, and what it decides about the newest events. */

/** Returns a filter as lines `field=value`, sorted by field. */
export const filterLines = (filter: EventFilter): string[] =>
  Object.entries(filter)
    .sort(([one], [other]) => (one < other ? -1 : 1))
    .flatMap(([field, values]) => values.map((value) => `${field}=${value}`));

/** Reads lines `field=value`. @returns the first line that is none instead, as `invalid` */
export function readFilter(lines: readonly string[]): { filter: EventFilter } | { invalid: string } {
  const filter = new Map<string, string[]>();
  for (const line of lines) {
    const [, field = "", value = ""] = /^([^=]+)=(.*)$/s.exec(line) ?? [];
    if (field === "") return { invalid: line };
    filter.set(field, [...(filter.get(field) ?? []), value]);
  }
  return { filter: Object.fromEntries(filter) };
}

/** The number of events that a filter is tried on: a page of the API. */
export const TRIED_EVENTS = 100;

/** Returns the newest deployment events of a project, newest first. */
export async function newestEvents(api: Pick<Client, "eachEvent">, projectId: string): Promise<DeploymentEvent[]> {
  const events: DeploymentEvent[] = [];
  for await (const event of api.eachEvent(projectId, { limit: TRIED_EVENTS })) {
    if (events.push(event) === TRIED_EVENTS) break;
  }
  return events;
}

/** Longer values of events are cut in a reason. */
const MAX_SHOWN = 100;

/** Returns whether a webhook receives an event by its events and its filter, and why. */
export function decisionOn(
  webhook: Subscription,
  { event, payload }: DeploymentEvent,
): { received: boolean; reason: string } {
  const { data = {} } = payload;
  const received = receives(webhook, { event, data });
  if (!webhook.events.includes(event)) return { received, reason: `${event} is not one of its events` };
  if (webhook.filter === undefined) return { received, reason: "it has no filter" };
  const decisive = compareFields(webhook.filter, data).filter(({ match }) => received || match === undefined);
  const reasons = decisive.map(({ field, value, match }) => {
    if (value === undefined) return `${field} is missing, or is no text, number or boolean`;
    const shown = value.length > MAX_SHOWN ? `${value.slice(0, MAX_SHOWN)}…` : value;
    return match === undefined || match === value ? `${field} is ${shown}` : `${field} is ${shown}, as ${match}`;
  });
  return { received, reason: reasons.join("; ") };
}

/** Returns the fields of a filter that none of the events has: their names may be misspelt. */
export const unknownFields = (filter: EventFilter | undefined, events: readonly DeploymentEvent[]): string[] =>
  Object.keys(filter ?? {}).filter(
    (field) => events.length > 0 && !events.some(({ payload }) => Object.hasOwn(payload.data ?? {}, field)),
  );
