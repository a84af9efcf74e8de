import { isPrintable } from "../../foundation/schema/unseen-text.ts";

/*
 * Which deployment events a webhook receives, and which filters the service accepts. The command line and the console
 * import this file to show what the service decides.
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

/** Returns whether a list has an event: by its name, or by a pattern, `*` or `deploy.*`, which also stands for events to come. */
export const listsEvent = (events: readonly string[], event: string): boolean =>
  events.some((listed) => matches(listed, event));

/** Returns whether a webhook receives a deployment event: it lists the event, and each field of its filter matches. */
export const receives = ({ events, filter = {} }: Subscription, { event, data }: ReceivedEvent): boolean =>
  listsEvent(events, event) && compareFields(filter, data).every(({ match }) => match !== undefined);

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

export const filterLimits = { fields: 5, values: 20, nameCharacters: 100, valueCharacters: 255, bytes: 4096 };
/** Zod leaves out the first without an error, and DynamoDB's client rejects a map with the second. */
const unusableNames = ["__proto__", "constructor"];

/** Returns the rule that the fields of a filter break; undefined = none. */
export function fieldsProblem(names: readonly string[]): string | undefined {
  const { fields, nameCharacters } = filterLimits;
  if (names.length < 1 || names.length > fields) return `must have 1 to ${fields} fields, or be null`;
  const isName = (name: string) =>
    name !== "" && [...name].length <= nameCharacters && isPrintable(name) && !unusableNames.includes(name);
  if (names.every(isName)) return undefined;
  return `must have fields with names of 1 to ${nameCharacters} characters, without control characters, other than ${unusableNames.join(" and ")}`;
}

/** Returns the rule that a value breaks, if all its characters are visible; undefined = none. */
export function valueProblem(text: string): string | undefined {
  const { valueCharacters } = filterLimits;
  if (text === "" || [...text].length > valueCharacters) return `must have 1 to ${valueCharacters} characters`;
  return text.slice(0, -1).includes("*") ? "must have * only at its end" : undefined;
}

/** Returns the first rule of the service that a filter breaks, with the field; undefined = it would be stored. */
export function filterProblem(filter: EventFilter): string | undefined {
  const { values, bytes } = filterLimits;
  const rule = fieldsProblem(Object.keys(filter));
  if (rule !== undefined) return `The filter ${rule}.`;
  for (const [field, all] of Object.entries(filter)) {
    if (all.length > values) return `The filter's ${field} must have at most ${values} entries.`;
    for (const value of all) {
      const broken = valueProblem(value) ?? (isPrintable(value) ? undefined : "must not have invisible characters");
      if (broken !== undefined) return `The filter's ${field}=${value} ${broken}.`;
    }
  }
  const size = new TextEncoder().encode(JSON.stringify(filter)).length;
  return size > bytes ? `The filter must have at most ${bytes} bytes as JSON.` : undefined;
}
