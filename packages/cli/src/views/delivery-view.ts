import type { Attempt, Delivery, DeliveryStatus, DeliveryWithAttempts } from "../../../client/src/client.ts";
import { jsonText, printable, type Style, styled } from "../terminal/terminal.ts";
import { type Cell, facts, relativeTime, shorten, table } from "./table.ts";

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

/** Returns what a delivery waits for: `next in 4 min`, `retry in 40 s`; undefined when no attempt follows. */
export function waitText(delivery: Delivery, now = new Date()): string | undefined {
  const { status, waiting_for, next_attempt_at } = delivery;
  switch (waiting_for) {
    case "recovery":
      return `receiver down, probe ${relativeTime(next_attempt_at, now)}`;
    case "busy":
      return "waits for a free sender";
    case "suspended":
      return status === "held" ? "sent by recover or redeliver only" : "webhook disabled, will be held";
    default:
      if (next_attempt_at === null) return undefined;
      return `${isFailing(delivery) ? "retry" : "next"} ${relativeTime(next_attempt_at, now)}`;
  }
}

/** @param webhooks names or hosts by id, of those that exist */
export function deliveryTable(deliveries: Delivery[], webhooks: Map<string, string>): string {
  const rows = deliveries.map((delivery) => [
    stateCell(delivery),
    String(delivery.attempt_count),
    delivery.last_attempt ? resultOf(delivery.last_attempt) : "",
    delivery.test ? `${delivery.event} (test)` : delivery.event,
    webhooks.get(delivery.webhook_id) ?? delivery.webhook_id,
    relativeTime(delivery.created_at),
    delivery.id,
  ]);
  // The most important first, because a narrow terminal does not show the last ones.
  return table(["status", "attempts", "last", "event", "webhook", "created", "id"], rows);
}

/** Whether it was not sent, on purpose. */
const isOver = ({ status }: Delivery): boolean => status === "shadowed" || status === "superseded";

/** The status, and what the delivery waits for: `failing, retry in 4 min`. */
function stateCell(delivery: Delivery): Cell {
  const { text, style } = statusCell(delivery);
  const wait = delivery.status === "held" ? undefined : waitText(delivery);
  return { text: wait === undefined ? text : `${text}, ${wait}`, style };
}

/** Upper bound on the hints below a list. */
const MAX_HINTS = 3;

/** A superseded delivery needs no repair, also after an attempt that failed. */
const isFailure = ({ status }: Delivery): boolean => status !== "succeeded" && status !== "superseded";

/** Returns how to fix the failures of a list, each sentence once. */
export const hintsOf = (deliveries: Delivery[]): string[] =>
  [...new Set(deliveries.filter(isFailure).flatMap(({ last_attempt }) => last_attempt?.hint || []))]
    .slice(0, MAX_HINTS)
    .map((hint) => `→ ${printable(hint)}`);

/** The result of an attempt: `connection_refused in 3 ms`, `500 in 12 ms`, `200 in 15 ms (2 requests)`. */
function resultOf({
  error_code,
  status_code,
  duration_ms,
  request_count = 1,
}: NonNullable<Delivery["last_attempt"]> & { request_count?: number }): string {
  const result = error_code === null || error_code === "http_status" ? String(status_code) : error_code;
  return `${result} in ${duration_ms} ms${request_count > 1 ? ` (${request_count} requests)` : ""}`;
}

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
  const wait = waitText(delivery, now);
  // The first attempt of a new delivery is about to be made.
  const isWaiting = attempt_count > 0 || (waiting_for !== null && waiting_for !== "schedule");
  const parts = [
    styled(style, status.padEnd("succeeded".length)),
    printable(event),
    ...(webhook === undefined ? [] : [printable(webhook)]),
    id,
    `attempt ${attempt_count}`,
    ...(lastAttempt ? [resultOf(lastAttempt)] : []),
    ...(wait !== undefined && isWaiting ? [wait] : []),
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
