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
  /** Only for `create` with headers. */
  header_names?: string[];
  enabled?: boolean;
  /** Only for `update`: each field that changes. */
  changes?: object;
  /** Only for `create`, and not with `--dry-run`. */
  secret?: string;
}

export function toChangeRecord(change: Change): ChangeRecord {
  const { action } = change;
  if (action === "create") {
    const { enabled = true, headers } = change.declared;
    const names = headers && { header_names: Object.keys(headers) };
    return { action, id: null, ...newWebhookOf(change.declared), ...names, enabled };
  }
  const { id, url } = change.webhook;
  return { action, id, url, ...(action === "update" && { changes: change.changes }) };
}

/** Returns the body of the request that creates a declared webhook, without its headers. */
export const newWebhookOf = (declared: DeclaredWebhook) => {
  const { url, name, events, filter, format, signatures, delivery, settle_seconds } = declared;
  return {
    ...{
      url,
      ...(name && { name }),
      ...(filter && { filter }),
      ...(format && { format }),
      ...(signatures && { signatures }),
    },
    ...{ ...(delivery && { delivery }), ...(settle_seconds && { settle_seconds }) },
    events: [...new Set(events)],
  };
};

/** @param stream where the text is printed: decides about colors */
export function planText(plan: Change[], stream: NodeJS.WriteStream): string {
  const lines = plan.flatMap((change) => linesOf(change, stream));
  const isUncompared = plan.some((change) => {
    if (change.action === "update") return change.webhook.header_names && !change.changes.headers;
    return change.action === "unchanged" && change.webhook.header_names;
  });
  const uncompared = "The values of headers cannot be compared: --headers sends them again.";
  return [...lines, ...(isUncompared ? [uncompared] : []), summaryOf(plan)].join("\n");
}

function linesOf(change: Change, stream: NodeJS.WriteStream): string[] {
  const added = (text: string) => styled("green", `+ ${text}`, stream);
  const removed = (text: string) => styled("red", `- ${text}`, stream);
  if (change.action === "create") {
    const { url, headers, enabled } = change.declared;
    const { url: _, ...declared } = newWebhookOf(change.declared);
    const names = headers && { headers: Object.keys(headers) };
    const fields = { ...declared, ...names, ...(enabled === false && { enabled }) };
    return [added(printable(url)), ...Object.entries(fields).map(([field, value]) => added(newText(field, value)))];
  }
  const name = `${printable(change.webhook.url)}  ${change.webhook.id}`;
  if (change.action === "delete") return [removed(`${name}, with its delivery log`)];
  if (change.action === "keep") return [`  ${name}  not in the file; kept`];
  if (change.action === "unchanged") return [`  ${name}`];
  const changed = Object.entries(change.changes).flatMap(([field, { from, to }]) => [
    removed(fieldText(field, from)),
    added(newText(field, to)),
  ]);
  return [styled("yellow", `~ ${name}`, stream), ...changed];
}

type FieldValue = string | number | boolean | string[] | EventFilter | null;

/** The plan has the names of headers; their values are sent with it. */
const newText = (field: string, value: FieldValue): string =>
  field === "headers" && value !== null ? `${fieldText(field, value)} (values are sent)` : fieldText(field, value);

/** `  events: deploy.failed deploy.succeeded`. */
function fieldText(field: string, value: FieldValue): string {
  if (value === null) return `  ${field}: none`;
  if (Array.isArray(value)) return `  ${field}: ${printable(value.join(" "))}`;
  return `  ${field}: ${printable(typeof value === "object" ? filterLines(value).join(", ") : String(value))}`;
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
