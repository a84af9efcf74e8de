import {
  compareFields,
  type EventFilter,
  filterProblem,
  listsEvent,
  receives,
  type Subscription,
} from "../../../functions/webhooks/webhook/event-filter.ts";
import type { Client, DeploymentEvent } from "./client.ts";

export { type EventFilter, listsEvent };

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

/** What a filter decides about some events, with words for a person. */
export interface Trial {
  decisions: (DeploymentEvent & { received: boolean; reason: string })[];
  summary: string;
  /** A rule of the service that the filter breaks, and fields that none of the events has and may be misspelt. */
  problems: string[];
}

/** Returns whether a webhook receives events by its events and its filter, and why. */
export function trialOf(webhook: Subscription, events: readonly DeploymentEvent[]): Trial {
  const decisions = events.map((event) => {
    const subject = { event: event.event, data: event.payload.data ?? {} };
    return { ...event, received: receives(webhook, subject), reason: reasonOf(webhook, subject) };
  });
  const rejected = webhook.filter && filterProblem(webhook.filter);
  const sent = decisions.filter(({ received }) => received).length;
  const unknown = Object.keys(webhook.filter ?? {}).filter(
    (field) => events.length > 0 && !events.some(({ payload }) => Object.hasOwn(payload.data ?? {}, field)),
  );
  return {
    decisions,
    summary:
      events.length === 0 ? "The project has no events of the last 30 days." : `${sent} of ${events.length} are sent.`,
    problems: [
      ...(rejected === undefined ? [] : [`${rejected} The service does not accept this filter.`]),
      ...unknown.map((field) => `None of the events has the field "${field}" in its data. Is it misspelt?`),
    ],
  };
}

/** Longer values of events are cut in a reason. */
const MAX_SHOWN = 100;

function reasonOf(webhook: Subscription, subject: { event: string; data: object }): string {
  if (!listsEvent(webhook.events, subject.event)) return `${subject.event} is not one of its events`;
  if (webhook.filter === undefined) return "it has no filter";
  const compared = compareFields(webhook.filter, subject.data);
  const missed = compared.filter(({ match }) => match === undefined);
  const reasons = (missed.length > 0 ? missed : compared).map(({ field, value, match }) => {
    if (value === undefined) return `${field} is missing, or is no text, number or boolean`;
    const shown = value.length > MAX_SHOWN ? `${value.slice(0, MAX_SHOWN)}…` : value;
    return match === undefined || match === value ? `${field} is ${shown}` : `${field} is ${shown}, as ${match}`;
  });
  return reasons.join("; ");
}
