import { formatOfUrl } from "../../../../functions/webhooks/formats/format-of-url.ts";
import type { WebhookEventName, WebhookInList } from "../../../client/src/client.ts";
import { type EventFilter, filterLines } from "../../../client/src/event-filter.ts";
import { CommandError, exitCodes } from "../terminal/exit-codes.ts";
import { matchKey } from "./match-key.ts";
import type { DeclaredWebhook } from "./webhooks-file.ts";

/* What has to change so that a project has the webhooks that a file declares. Pure. */

/** The fields of a webhook that change. */
export interface FieldChanges {
  /** Null = no name. */
  name?: { from: string | null; to: string | null };
  events?: { from: WebhookEventName[]; to: WebhookEventName[] };
  /** Null = no filter. */
  filter?: { from: EventFilter | null; to: EventFilter | null };
  enabled?: { from: boolean; to: boolean };
  format?: { from: string; to: string };
  signatures?: { from: string[]; to: string[] };
  /** Names. Their values cannot be compared; they are sent with a change of them. Null = none. */
  headers?: { from: string[] | null; to: string[] | null };
  delivery?: { from: string; to: string };
  settle_seconds?: { from: number; to: number };
}

export type Change =
  | { action: "create"; declared: DeclaredWebhook }
  | { action: "update"; webhook: WebhookInList; declared: DeclaredWebhook; changes: FieldChanges }
  | { action: "delete"; webhook: WebhookInList }
  | { action: "unchanged"; webhook: WebhookInList }
  /** The file does not have the webhook, and it is not to be deleted. */
  | { action: "keep"; webhook: WebhookInList };

/**
 * Compares the webhooks of a project with the declared ones. A declared webhook matches the one with its URL: an id would
 * have to be written back into the file after the first run.
 * @param options `prune` deletes the webhooks that are not declared; `headers` sends all headers again, whose values cannot be compared
 * @returns the declared webhooks in the order of the file, then the others
 * @throws CommandError when several webhooks of the project have a declared URL, or the URLs are masked for the credential
 */
export function planChanges(
  declared: DeclaredWebhook[],
  existing: WebhookInList[],
  { prune, headers = false }: { prune: boolean; headers?: boolean },
): Change[] {
  if (existing.some(({ url }) => url.endsWith("/***"))) {
    const message = "The URLs of the webhooks are masked for this credential, so that they cannot be compared.";
    throw new CommandError(exitCodes.failed, message, "Use one of an admin of the project with webhooks:write.");
  }
  const keys = new Set(declared.map(({ url }) => matchKey(url)));
  const others = existing.filter(({ url }) => !keys.has(matchKey(url)));
  return [
    ...declared.map((each) => compare(each, withUrl(existing, each.url), headers)),
    ...others.map((webhook): Change => ({ action: prune ? "delete" : "keep", webhook })),
  ];
}

function withUrl(existing: WebhookInList[], url: string): WebhookInList | undefined {
  const matches = existing.filter((webhook) => matchKey(webhook.url) === matchKey(url));
  if (matches.length < 2) return matches[0];
  throw new CommandError(
    exitCodes.failed,
    `The project has ${matches.length} webhooks with the URL ${url}, so that none can be chosen.`,
    `Delete all but one: svc webhooks delete <id>\n${matches.map(({ id }) => `  ${id}`).join("\n")}`,
  );
}

function compare(declared: DeclaredWebhook, webhook: WebhookInList | undefined, sendsHeaders: boolean): Change {
  if (webhook === undefined) {
    const { format = formatOfUrl(declared.url) } = declared;
    return { action: "create", declared: { ...declared, ...(format && { format }) } };
  }
  const changes = { ...changesOf(declared, webhook), ...deliveryChanges(declared, webhook, sendsHeaders) };
  const isSame = Object.keys(changes).length === 0;
  return isSame ? { action: "unchanged", webhook } : { action: "update", webhook, declared, changes };
}

const isSameSet = (one: Set<string>, other: Set<string>) =>
  one.size === other.size && [...one].every((each) => other.has(each));

function changesOf({ name, events, filter, enabled }: DeclaredWebhook, webhook: WebhookInList): FieldChanges {
  const [from, to] = [new Set(webhook.events), new Set(events)];
  const filterNow = webhook.filter ?? null;
  const linesOf = (filter: EventFilter | null) => new Set(filterLines(filter ?? {}));
  const hasSameState = enabled === undefined || enabled === webhook.enabled;
  const namedNow = webhook.name ?? null;
  return {
    ...(name !== undefined && name !== namedNow && { name: { from: namedNow, to: name } }),
    ...(!isSameSet(from, to) && { events: { from: [...from], to: [...to] } }),
    ...(filter !== undefined &&
      !isSameSet(linesOf(filter), linesOf(filterNow)) && { filter: { from: filterNow, to: filter } }),
    ...(!hasSameState && { enabled: { from: webhook.enabled, to: enabled } }),
  };
}

/** The fields that are a value or a short list, with what is absent. */
const usual = { format: "standard", signatures: ["hmac"], delivery: "every", settle_seconds: 0 };

function deliveryChanges(declared: DeclaredWebhook, webhook: WebhookInList, sendsHeaders: boolean): FieldChanges {
  const now = { ...usual, ...webhook };
  const fields = (Object.keys(usual) as (keyof typeof usual)[])
    .filter((name) => declared[name] !== undefined && String(declared[name]) !== String(now[name]))
    .map((name) => [name, { from: now[name], to: declared[name] }]);
  const from = webhook.header_names ?? null;
  const to = declared.headers ? Object.keys(declared.headers) : null;
  const isSame = isSameSet(new Set(from), new Set(to)) && !(sendsHeaders && to);
  return {
    ...Object.fromEntries(fields),
    ...(declared.headers !== undefined && !isSame && { headers: { from, to } }),
  };
}

/** Leaves the hosts of the URLs that the file does not have: the rest may be a token, and others may read the plan. */
export const withMaskedUrls = (plan: Change[]): Change[] =>
  plan.map((change) => {
    if (change.action !== "keep" && change.action !== "delete") return change;
    return { ...change, webhook: { ...change.webhook, url: `${new URL(change.webhook.url).origin}/***` } };
  });

export const isChange = ({ action }: Change): boolean => action !== "unchanged" && action !== "keep";

/**
 * @throws CommandError when a declared webhook would be enabled and its receiver has not passed its last certification.
 * In shadow mode nothing is sent, so that none is required.
 */
export function requireCertified(plan: Change[], projectId: string): void {
  const steps = plan.flatMap((change) => {
    if (change.action === "create") {
      const { url, enabled } = change.declared;
      return enabled === false ? [] : `Declare ${url} with enabled: false first, to certify it before it gets events.`;
    }
    if (change.action !== "update" && change.action !== "unchanged") return [];
    const { id, enabled, mode, last_certification } = change.webhook;
    const isEnabled = change.action === "update" && change.changes.enabled ? change.changes.enabled.to : enabled;
    const isSent = isEnabled && mode !== "shadow";
    return isSent && !last_certification?.passed ? `svc webhooks certify ${id} --project ${projectId}` : [];
  });
  if (steps.length === 0) return;
  const message = "Nothing was changed: receivers of the file are not certified.";
  throw new CommandError(exitCodes.failed, message, `Do this first:\n${steps.map((step) => `  ${step}`).join("\n")}`);
}
