/*
 * Which deployment events a webhook receives. The command line and the console import this file to show what the fan-out
 * decides, so it imports nothing.
 */

/** By field of an event's `data`: the values, one of which the field must have. A `*` at the end of a value matches any rest. */
export type EventFilter = Record<string, string[]>;

export interface Subscription {
  events: readonly string[];
  /** Absent = every event. */
  filter?: EventFilter | undefined;
}

interface ReceivedEvent {
  event: string;
  data: object;
}

/** Returns whether a webhook receives a deployment event: it lists the event, and each field of its filter matches. */
export const receives = ({ events, filter = {} }: Subscription, { event, data }: ReceivedEvent): boolean =>
  events.includes(event) && compareFields(filter, data).every(({ match }) => match !== undefined);

export interface ComparedField {
  field: string;
  /** The value in the event, as text; undefined = it has none that could match. */
  value: string | undefined;
  /** The value in the filter that it matches; undefined = none. */
  match: string | undefined;
}

/** Compares each field of a filter with the fields of an event. */
export const compareFields = (filter: EventFilter, data: object): ComparedField[] =>
  Object.entries(filter).map(([field, values]) => {
    // Not `data[field]`: an inherited field such as `constructor` is none of the event.
    const value = textOf(Object.getOwnPropertyDescriptor(data, field)?.value);
    return { field, value, match: value === undefined ? undefined : values.find((each) => matches(each, value)) };
  });

const matches = (pattern: string, value: string): boolean =>
  pattern.endsWith("*") ? value.startsWith(pattern.slice(0, -1)) : value === pattern;

/** Returns a string, number or boolean as text. A number that a double cannot hold was parsed to an object with its text. */
function textOf(value: unknown): string | undefined {
  if (typeof value === "string") return value;
  if (typeof value === "number" || typeof value === "boolean") return String(value);
  const isExactNumber =
    typeof value === "object" && value !== null && Object.getPrototypeOf(value) !== Object.prototype;
  return isExactNumber && "rawJSON" in value ? String(value.rawJSON) : undefined;
}
