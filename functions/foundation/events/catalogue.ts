import { deploymentEvents, type EventRow, type OwnEvent, ownEventsProblem, webhookEvents } from "../manifest/events.ts";
import { settings } from "../platform/env.ts";
import { jsonListSetting } from "../schema/json-setting.ts";

/* The events of this stage: those of the service (manifest/events.ts), and its own of the setting EVENTS. */

const ownEvents = jsonListSetting<OwnEvent>(
  "EVENTS",
  settings.events,
  '[{"name":"deploy.canceled","description":"the deployment was canceled","final":true}]',
  (value) => {
    const problem = ownEventsProblem(value);
    if (problem !== undefined) throw new Error(problem);
    return value as OwnEvent[];
  },
);

let last: { own: OwnEvent[]; rows: ReadonlyMap<string, EventRow> } | undefined;

/**
 * Returns the events that the pipeline can send, by name.
 * @throws SettingError when EVENTS is not valid
 */
export function deploymentEventRows(): ReadonlyMap<string, EventRow> {
  const own = ownEvents();
  if (last?.own !== own) {
    const added = own.map(({ name, tone = "neutral", data = { type: "object" }, ...row }): [string, EventRow] => [
      name,
      { ...row, tone, data },
    ]);
    last = { own, rows: new Map<string, EventRow>([...Object.entries(deploymentEvents), ...added]) };
  }
  return last.rows;
}

/** Returns the row of an event; undefined = this stage does not have it, or no longer. */
export const eventRow = (name: string): EventRow | undefined =>
  deploymentEventRows().get(name) ?? (webhookEvents as Record<string, EventRow>)[name];

/**
 * Returns whether a deployment ends with an event. One that the stage has no longer may have been the end of those
 * before.
 */
export const isFinal = (name: string): boolean => eventRow(name)?.final ?? true;

/** Returns the names of the events that a webhook can subscribe to. */
export const subscribableNames = (): string[] => [...deploymentEventRows().keys(), ...Object.keys(webhookEvents)];

/** Returns the names that are most like another one, by the number of characters to change. */
export function closestName(name: string, names: Iterable<string>): string | undefined {
  const [closest] = [...names]
    .map((known) => ({ known, changes: editDistance(name, known) }))
    .toSorted((one, other) => one.changes - other.changes);
  return closest?.known;
}

/**
 * https://en.wikipedia.org/wiki/Levenshtein_distance, of texts of any origin: only their first 100 characters are
 * compared.
 */
function editDistance(one: string, other: string): number {
  const to = other.slice(0, 100);
  let row = Array.from({ length: to.length + 1 }, (_, index) => index);
  for (const [index, character] of [...one.slice(0, 100)].entries()) {
    const next = [index + 1];
    for (let at = 0; at < to.length; at++) {
      const replaced = (row[at] ?? 0) + (to[at] === character ? 0 : 1);
      next.push(Math.min(replaced, (row[at + 1] ?? 0) + 1, (next[at] ?? 0) + 1));
    }
    row = next;
  }
  return row[to.length] ?? 0;
}
