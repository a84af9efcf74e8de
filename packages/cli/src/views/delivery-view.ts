import type { Attempt, Delivery, DeliveryStatus, DeliveryWithAttempts } from "../../../client/src/client.ts";
import { jsonText, printable, type Style, styled } from "../terminal/terminal.ts";
import { facts, idCell, relativeTime, shorten, shortId, tableOf, terminalWidth } from "./table.ts";

/* Deliveries as text for a person. */

const styleByStatus: Record<DeliveryStatus, Style> = {
  pending: "yellow",
  succeeded: "green",
  failed: "red",
  held: "magenta",
  cancelled: "dim",
  shadowed: "magenta",
  superseded: "dim",
};

/** A pending delivery whose last attempt failed, unlike one that was never tried. */
const isFailing = ({ status, last_attempt }: Pick<Delivery, "status" | "last_attempt">): boolean =>
  status === "pending" && last_attempt !== null && last_attempt.error_code !== null;

const statusCell = (delivery: Pick<Delivery, "status" | "last_attempt">): { text: string; style: Style } =>
  isFailing(delivery)
    ? { text: "failing", style: "red" }
    : { text: delivery.status, style: styleByStatus[delivery.status] };

/** Returns when the next attempt follows, and on what it depends: `in 4 min`, `probe 40 s`; undefined when none does. */
export function nextText({ status, waiting_for, next_attempt_at }: Delivery, now = new Date()): string | undefined {
  const isDue = next_attempt_at !== null && Date.parse(next_attempt_at) <= now.getTime();
  const at = isDue ? "due" : relativeTime(next_attempt_at, now);
  switch (waiting_for) {
    case "recovery":
      return `probe ${at.replace("in ", "")}`;
    case "busy":
      return "due";
    case "suspended":
      return status === "held" ? "on recover" : "held";
    default:
      return next_attempt_at === null ? undefined : at;
  }
}

/** With it, what happened and what is next fit into 80 columns. */
const MIN_COLUMN_WIDTH = 13;

/** @param webhooks names or hosts by id, of those that exist */
export function deliveryTable(deliveries: Delivery[], webhooks: Map<string, string>): string {
  const columns: Parameters<typeof tableOf<Delivery>>[1] = [
    ["id", ({ id }) => idCell(id)],
    ["status", statusCell],
    ["event", ({ event, test }) => (test ? `${event} (test)` : event)],
    ["webhook", ({ webhook_id }) => webhooks.get(webhook_id) ?? webhook_id],
    ["last", ({ last_attempt }) => (last_attempt ? outcomeOf(last_attempt) : "")],
    ["next", (delivery) => nextText(delivery) ?? ""],
    ["created", ({ created_at }) => relativeTime(created_at)],
    ["attempts", ({ attempt_count }) => String(attempt_count)],
    ["took", ({ last_attempt }) => (last_attempt ? `${last_attempt.duration_ms} ms` : "")],
  ];
  return tableOf(deliveries, columns, MIN_COLUMN_WIDTH);
}

/** Whether it was not sent, on purpose. */
const isOver = ({ status }: Delivery): boolean => status === "shadowed" || status === "superseded";

/** Upper bound on the hints below a list. */
const MAX_HINTS = 3;

/** A superseded delivery needs no repair, also after an attempt that failed. */
const isFailure = ({ status }: Delivery): boolean => status !== "succeeded" && status !== "superseded";

/** Returns how to fix the failures of a list, each sentence once, with the newest delivery that has it. */
export function hintsOf(deliveries: Delivery[], webhooks: Map<string, string>): string[] {
  const failures = deliveries.filter((delivery) => isFailure(delivery) && delivery.last_attempt?.hint);
  const byHint = Map.groupBy(failures, ({ last_attempt }) => last_attempt?.hint ?? "");
  return [...byHint].slice(0, MAX_HINTS).map(([hint, [first, ...others]]) => {
    const { id = "", webhook_id = "" } = first ?? {};
    const more = others.length > 0 ? ` and ${others.length} more` : "";
    return `→ ${shortId(id)} to ${printable(webhooks.get(webhook_id) ?? webhook_id)}${more}: ${printable(hint)}`;
  });
}

/** The result of an attempt: `connection_refused`, `500`. */
const outcomeOf = ({ error_code, status_code }: NonNullable<Delivery["last_attempt"]>): string =>
  error_code === null || error_code === "http_status" ? String(status_code) : error_code;

/** The result of an attempt: `connection_refused in 3 ms`, `500 in 12 ms`, `200 in 15 ms (2 requests)`. */
const resultOf = (attempt: NonNullable<Delivery["last_attempt"]> & { request_count?: number }): string =>
  `${outcomeOf(attempt)} in ${attempt.duration_ms} ms${(attempt.request_count ?? 1) > 1 ? ` (${attempt.request_count} requests)` : ""}`;

/** Upper bound on the characters of a response in a line. `svc deliveries show` shows the whole excerpt. */
const MAX_LINE_EXCERPT = 200;

/**
 * Formats a delivery on one line.
 * @param lastAttempt its result, its hint and the start of its response are shown; absent = none of them
 * @param webhook how the line names the webhook; absent = not at all
 */
export function deliveryLine(delivery: Delivery, lastAttempt?: Attempt, webhook?: string, now = new Date()): string {
  const { id, event, attempt_count, waiting_for } = delivery;
  const { text: status, style } = statusCell(delivery);
  const next = nextText(delivery, now);
  // The first attempt of a new delivery is about to be made.
  const isWaiting = attempt_count > 0 || (waiting_for !== null && waiting_for !== "schedule");
  const parts = [
    styled(style, status.padEnd("succeeded".length)),
    printable(event),
    ...(webhook === undefined ? [] : [printable(webhook)]),
    terminalWidth() === undefined ? id : shortId(id),
    `attempt ${attempt_count}`,
    ...(lastAttempt ? [resultOf(lastAttempt)] : []),
    ...(next !== undefined && isWaiting ? [`next ${next}`] : []),
  ];
  const { hint, response_excerpt: excerpt } = lastAttempt ?? {};
  const below = [
    ...(hint ? [`→ ${printable(hint)}`] : []),
    ...(excerpt ? [`response: ${shorten(printable(excerpt), MAX_LINE_EXCERPT)}`] : []),
  ];
  return [parts.join("  "), ...below.map((text) => `           ${styled("dim", text)}`)].join("\n");
}

function waitPage({ status, waiting_for, webhook_id }: Delivery, projectId: string): string | undefined {
  if (status === "held") {
    return `Held: the webhook was disabled, or its project suspended. Not sent by itself, also not after the webhook is enabled: svc deliveries recover --since 24h --webhook ${webhook_id} --project ${projectId}`;
  }
  switch (waiting_for) {
    case "recovery":
      return `The webhook fails. Sent after the next success, or as the next probe: svc webhooks show ${webhook_id} --project ${projectId}`;
    case "busy":
      return "Due, and waits for a free sender: others are sent to this webhook, or its receiver is slow.";
    case "suspended":
      return "The webhook is disabled, or its project suspended. Becomes held at its next attempt.";
    default:
      return undefined;
  }
}

/**
 * Formats a delivery with its attempts and its payload.
 * @param webhook how lists name its webhook; absent = the id alone
 */
export function deliveryPage(delivery: DeliveryWithAttempts, projectId: string, webhook?: string): string {
  const { id, webhook_id, event, deployment_id, test, created_at, next_attempt_at, attempts, payload, shadow } =
    delivery;
  const head = facts([
    ["id", id],
    ["webhook", webhook === undefined ? webhook_id : `${webhook} (${webhook_id})`],
    ["event", test ? `${event} (test)` : event],
    ["deployment", deployment_id ?? undefined],
    ["status", statusCell(delivery)],
    ["created", `${created_at} (${relativeTime(created_at)})`],
    ["next attempt", next_attempt_at === null ? undefined : `${next_attempt_at} (${relativeTime(next_attempt_at)})`],
    ["superseded by", delivery.superseded_by],
    ["waits", waitPage(delivery, projectId)],
  ]);
  const title = (text: string) => `\n${styled("bold", text)}`;
  return [
    head,
    title("Attempts"),
    ...(attempts.length === 0 ? [isOver(delivery) ? "none" : "none yet"] : attempts.map(attemptLines)),
    ...(shadow ? [title("Not sent, in shadow mode"), shadow.at, ...headerLines(shadow.headers)] : []),
    title("Payload"),
    jsonText(payload, 2),
  ].join("\n");
}

function attemptLines(attempt: Attempt): string {
  const mark = attempt.error_code === null ? styled("green", "✔") : styled("red", "✘");
  const lines = [`${mark} ${attempt.number}  ${attempt.at}  ${resultOf(attempt)}  ${styled("dim", attempt.trigger)}`];
  if (attempt.hint !== null) lines.push(`     ${styled("dim", `→ ${printable(attempt.hint)}`)}`);
  lines.push(...headerLines(attempt.response_headers ?? {}));
  if (attempt.response_excerpt) lines.push(`     ${styled("dim", "response:")} ${printable(attempt.response_excerpt)}`);
  return lines.join("\n");
}

const headerLines = (headers: Record<string, string>): string[] =>
  Object.entries(headers).map(([name, value]) => `     ${styled("dim", `${printable(name)}:`)} ${printable(value)}`);
