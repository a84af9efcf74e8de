import { formatLabels } from "../../../../functions/webhooks/formats/format-of-url.ts";
import type { Webhook, WebhookHealth, WebhookInList, WebhookStats } from "../../../client/src/client.ts";
import { filterLines } from "../../../client/src/event-filter.ts";
import type { Style } from "../terminal/terminal.ts";
import { type Cell, facts, relativeTime, table } from "./table.ts";

/* Webhooks, their health and their statistics as text for a person. */

const styleByState: Record<WebhookHealth["state"], Style> = {
  new: "dim",
  healthy: "green",
  slow: "yellow",
  failing: "red",
  probing: "red",
  shadow: "magenta",
  disabled: "red",
};

export const withoutScheme = (url: string): string => url.replace(/^https?:\/\//, "");

/** How lists name a webhook: by its name, or the host of its URL. */
export const webhookLabel = ({ name, url }: Pick<WebhookInList, "name" | "url">): string => name ?? new URL(url).host;

/** Returns the state of a webhook in a word: `healthy`, `failing`, `disabled`. */
export function stateCell({ enabled, suspended_at, mode, health }: WebhookInList): Cell {
  const style = styleByState[health.state];
  if (!enabled) return { text: "disabled", style };
  if (suspended_at !== undefined) return { text: "suspended", style };
  if (mode === "shadow") return { text: "shadow", style: "magenta" };
  return { text: health.state === "probing" ? "failing" : health.state, style };
}

/** Returns what is behind the state: `probe in 40 s, since 3 min ago`, `gone`, `project suspended`. */
export function stateDetail({ disabled_reason, suspended_at, health }: WebhookInList, now = new Date()): string {
  const { state, since, next_probe_at } = health;
  const isDue = next_probe_at !== null && Date.parse(next_probe_at) <= now.getTime();
  return [
    disabled_reason,
    suspended_at === undefined ? undefined : "project suspended",
    state === "probing" && next_probe_at !== null
      ? `probe ${isDue ? "due" : relativeTime(next_probe_at, now)}`
      : undefined,
    since === null || state === "shadow" ? undefined : `since ${relativeTime(since, now)}`,
  ]
    .filter(Boolean)
    .join(", ");
}

/** Whether the receiver passed its last certification; empty before the first one. */
export function certificationCell({ last_certification: last }: WebhookInList, now = new Date()): Cell {
  if (last === undefined) return { text: "" };
  const age = relativeTime(last.finished_at, now);
  return last.passed ? { text: `passed ${age}`, style: "green" } : { text: `not passed ${age}`, style: "yellow" };
}

/** The effect of a state on deliveries, and the next step; undefined where there is nothing to do. */
function meaningOf({ id, project_id, suspended_at, mode, health: { state } }: Webhook): string | undefined {
  if (suspended_at !== undefined) return "Deliveries are held. Contact the operator of the platform.";
  if (mode === "shadow" && state !== "disabled")
    return `Deliveries are signed and logged, and not sent. Switch it: svc webhooks update ${id} --mode live --project ${project_id}`;
  switch (state) {
    case "new":
      return `No delivery has succeeded yet. Send one: svc webhooks test ${id} --project ${project_id}`;
    case "slow":
      return "The receiver responds slowly: deliveries may wait for each other.";
    case "failing":
      return "Deliveries are retried. From 30 seconds of failures on, the oldest that waits is sent as a probe.";
    case "probing":
      return "Deliveries wait. The oldest is sent as a probe, and after a success all others, oldest first.";
    case "disabled":
      return `Deliveries are held, and not sent by themselves later. Enable the webhook and send them: svc webhooks update ${id} --enable --project ${project_id} && svc deliveries recover --since 24h --webhook ${id} --project ${project_id}`;
    default:
      return undefined;
  }
}

/** Below the address of the API. */
const publicKeysPath = (projectId: string): string =>
  `/.well-known/http-message-signatures-directory?project_id=${projectId}`;

/** Formats a webhook with its health. */
export function webhookPage(webhook: Webhook, now = new Date()): string {
  const { id, project_id, url, name, events, filter, created_at, disabled_at, suspended_at, health } = webhook;
  const { format, header_names, signatures, delivery, settle_seconds } = webhook;
  const { state, since, last_success_at, last_error, next_probe_at } = health;
  const timed = (at: string) => `${at} (${relativeTime(at, now)})`;
  const isFailing = state === "failing" || state === "probing";
  return facts([
    ["id", id],
    ["project", project_id],
    ["name", name],
    ["url", url],
    ["events", events.join(" ")],
    ["filter", filter && filterLines(filter).join(", ")],
    ["format", format && formatLabels[format]],
    ["headers", header_names?.join(", ")],
    ["signatures", signatures?.join(", ")],
    ["public keys", signatures?.some((scheme) => scheme !== "hmac") ? publicKeysPath(project_id) : undefined],
    ["delivery", delivery && `the latest state only${settle_seconds ? `, after ${settle_seconds} s` : ""}`],
    [
      "state",
      { ...stateCell(webhook), text: [stateCell(webhook).text, stateDetail(webhook, now)].filter(Boolean).join(", ") },
    ],
    ["", meaningOf(webhook)],
    ["failing", isFailing && since !== null ? timed(since) : undefined],
    ["disabled", disabled_at === null ? undefined : timed(disabled_at)],
    ["suspended", suspended_at === undefined ? undefined : timed(suspended_at)],
    ["last error", last_error === null ? undefined : `${last_error.error_code}: ${last_error.hint}`],
    ["last success", last_success_at === null ? "none among the newest deliveries" : timed(last_success_at)],
    ["certified", webhook.last_certification && certificationCell(webhook, now)],
    ["next probe", next_probe_at === null ? undefined : timed(next_probe_at)],
    ["created", timed(created_at)],
  ]);
}

const LEVELS = [..."▁▂▃▄▅▆▇█"];

/** Formats numbers as bars of one character each. Zero is a dot, and null, which means that there is no value, a space. */
export function bars(values: (number | null)[], max = Math.max(...values.map((value) => value ?? 0))): string {
  return values
    .map((value) => {
      if (value === null) return " ";
      if (value === 0) return "·";
      return LEVELS[Math.min(LEVELS.length, Math.ceil((value / max) * LEVELS.length)) - 1];
    })
    .join("");
}

type Bucket = Pick<WebhookStats["buckets"][number], "attempts" | "succeeded" | "p95_ms">;

/** Adds up neighbours until at most `count` buckets are left. The p95 of a sum is the largest of its parts. */
export function mergeBuckets(buckets: Bucket[], count: number): Bucket[] {
  const size = Math.ceil(buckets.length / Math.max(1, count));
  const add = (sum: Bucket, next: Bucket): Bucket => ({
    attempts: sum.attempts + next.attempts,
    succeeded: sum.succeeded + next.succeeded,
    p95_ms: sum.p95_ms === null ? next.p95_ms : Math.max(sum.p95_ms, next.p95_ms ?? 0),
  });
  const starts = buckets.flatMap((_, index) => (index % size === 0 ? index : []));
  return starts.map((start) => buckets.slice(start, start + size).reduce(add));
}

/** The width of the names beside the bars, with the gap after them. */
const NAMES_WIDTH = 12;

const percent = (share: number) => `${(Math.floor(share * 1000) / 10).toFixed(1)} %`;
const millis = (value: number) => `${Math.round(value)} ms`;

/**
 * Formats statistics: totals, bars over time, and tables by event and error.
 * @param width the width of the terminal in columns; absent = not a terminal
 */
export function statsPage(stats: WebhookStats, width = process.stdout.columns || 80, now = new Date()): string {
  const { window, since, attempts, succeeded, success_rate, response_ms, by_event, by_error } = stats;
  const buckets = mergeBuckets(stats.buckets, width - NAMES_WIDTH);
  const minutes = (stats.bucket_seconds * stats.buckets.length) / buckets.length / 60;
  const length = minutes < 120 ? `${Math.round(minutes)} min` : `${Math.round(minutes / 60)} h`;
  const highest = Math.max(...buckets.map((bucket) => bucket.attempts));
  const goods = buckets.map((bucket) => bucket.succeeded);
  const bads = buckets.map((bucket) => bucket.attempts - bucket.succeeded);
  const p95s = buckets.map(({ p95_ms }) => p95_ms);
  const slowest = Math.max(...p95s.map((value) => value ?? 0));
  const page = facts([
    ["window", `${window}, since ${since}`],
    ["attempts", success_rate === null ? "none" : `${attempts}, ${succeeded} succeeded (${percent(success_rate)})`],
    ["response", response_ms ? `p50 ${millis(response_ms.p50)}, p95 ${millis(response_ms.p95)}` : undefined],
    ["superseded", stats.superseded ? `${stats.superseded} not sent, a newer state was` : undefined],
    ["covered", stats.complete ? undefined : coverage(stats, now)],
  ]);
  if (attempts === 0) return page;
  const charts = facts([
    ["succeeded", { text: bars(goods, highest), style: "green" }],
    ["failed", { text: bars(bads, highest), style: "red" }],
    ["p95", response_ms ? bars(p95s, slowest) : undefined],
    ["", `oldest first; one bar: ${length}; highest: ${highest} attempts${response_ms ? `, ${millis(slowest)}` : ""}`],
  ]);
  const byEvent = by_event.map((each) => [each.event, String(each.attempts), String(each.succeeded)]);
  const byError = by_error.map((each) => [each.error_code, String(each.attempts)]);
  return [
    page,
    charts,
    table(["event", "attempts", "succeeded"], byEvent, width),
    ...(byError.length > 0 ? [table(["error", "attempts"], byError, width)] : []),
  ].join("\n\n");
}

const coverage = ({ deliveries_read, covered_since }: WebhookStats, now: Date): Cell => ({
  text: `only the newest ${deliveries_read} deliveries, since ${covered_since} (${relativeTime(covered_since, now)})`,
  style: "yellow",
});
