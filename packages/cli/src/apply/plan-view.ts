import { type EventFilter, filterLines } from "../../../client/src/event-filter.ts";
import { printable, styled } from "../terminal/terminal.ts";
import type { Change } from "./plan.ts";
import type { DeclaredWebhook } from "./webhooks-file.ts";

/* A plan as text, in the manner of a diff, and as records of `--json`. */

/** A line of `--json`. The names are API. */
export interface ChangeRecord {
  action: Change["action"];
  /** Null for a webhook that is not created yet. */
  id: string | null;
  url: string;
  /** Only for `create` with a name. */
  name?: string;
  /** Only for `create`. */
  events?: string[];
  /** Only for `create` with a filter. */
  filter?: EventFilter;
  enabled?: boolean;
  /** Only for `update`: each field that changes. */
  changes?: object;
  /** Only for `create`, and not with `--dry-run`. */
  secret?: string;
}

export function toChangeRecord(change: Change): ChangeRecord {
  const { action } = change;
  if (action === "create") {
    const { enabled = true } = change.declared;
    return { action, id: null, ...newWebhookOf(change.declared), enabled };
  }
  const { id, url } = change.webhook;
  return { action, id, url, ...(action === "update" && { changes: change.changes }) };
}

/** Returns the body of the request that creates a declared webhook. */
export const newWebhookOf = ({ url, name, events, filter }: DeclaredWebhook) => ({
  ...{ url, ...(name && { name }), ...(filter && { filter }) },
  events: [...new Set(events)],
});

/** @param stream where the text is printed: decides about colors */
export function planText(plan: Change[], stream: NodeJS.WriteStream): string {
  const lines = plan.flatMap((change) => linesOf(change, stream));
  return [...lines, summaryOf(plan)].join("\n");
}

function linesOf(change: Change, stream: NodeJS.WriteStream): string[] {
  const added = (text: string) => styled("green", `+ ${text}`, stream);
  const removed = (text: string) => styled("red", `- ${text}`, stream);
  const shown = (text: string | null) => (text === null ? "none" : printable(text));
  const filtered = (filter: EventFilter | null) => shown(filter && filterLines(filter).join(", "));
  if (change.action === "create") {
    const { url, name, events, filter, enabled } = change.declared;
    const title = name ? [added(`  name: ${printable(name)}`)] : [];
    const state = enabled === false ? [added("  enabled: false")] : [];
    const limits = filter ? [added(`  filter: ${filtered(filter)}`)] : [];
    return [added(printable(url)), ...title, added(`  events: ${events.join(" ")}`), ...limits, ...state];
  }
  const name = `${printable(change.webhook.url)}  ${change.webhook.id}`;
  if (change.action === "delete") return [removed(`${name}, with its delivery log`)];
  if (change.action === "keep") return [`  ${name}  not in the file; kept`];
  if (change.action === "unchanged") return [`  ${name}`];
  const { name: title, events, filter, enabled } = change.changes;
  return [
    styled("yellow", `~ ${name}`, stream),
    ...(title ? [removed(`  name: ${shown(title.from)}`), added(`  name: ${shown(title.to)}`)] : []),
    ...(events ? [removed(`  events: ${events.from.join(" ")}`), added(`  events: ${events.to.join(" ")}`)] : []),
    ...(filter ? [removed(`  filter: ${filtered(filter.from)}`), added(`  filter: ${filtered(filter.to)}`)] : []),
    ...(enabled ? [removed(`  enabled: ${enabled.from}`), added(`  enabled: ${enabled.to}`)] : []),
  ];
}

/** `1 to create, 2 unchanged.` */
function summaryOf(plan: Change[]): string {
  const names: Record<Change["action"], string> = {
    create: "to create",
    update: "to update",
    delete: "to delete",
    unchanged: "unchanged",
    keep: "not in the file (--prune deletes them)",
  };
  const counts = Object.entries(names).flatMap(([action, name]) => {
    const { length } = plan.filter((change) => change.action === action);
    return length === 0 ? [] : [`${length} ${name}`];
  });
  return counts.length === 0 ? "No webhooks." : `${counts.join(", ")}.`;
}
