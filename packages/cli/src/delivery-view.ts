import type { Attempt, Delivery, DeliveryWithAttempts } from "../../client/src/client.ts";
import { type Cell, facts, relativeTime, table } from "./table.ts";
import { jsonText, paint, printable, type Style } from "./terminal.ts";

/* Deliveries as a person reads them. */

const styles: Record<Delivery["status"], Style> = {
  pending: "yellow",
  succeeded: "green",
  failed: "red",
  held: "magenta",
  cancelled: "dim",
};

export const statusCell = ({ status }: Pick<Delivery, "status">): Cell => ({ text: status, style: styles[status] });

export function deliveryTable(deliveries: Delivery[]): string {
  const rows = deliveries.map((delivery) => [
    delivery.id,
    delivery.test ? `${delivery.event} (test)` : delivery.event,
    statusCell(delivery),
    String(delivery.attempt_count),
    delivery.next_attempt_at === null ? "" : relativeTime(delivery.next_attempt_at),
    relativeTime(delivery.created_at),
    delivery.webhook_id,
  ]);
  return table(["id", "event", "status", "attempts", "next", "created", "webhook"], rows);
}

/** What an attempt came to: `connection_refused`, `500 in 12 ms`. */
export function resultOf({ error_code, status_code, duration_ms }: Attempt): string {
  const result = error_code === null || error_code === "http_status" ? String(status_code) : error_code;
  return `${result} in ${duration_ms} ms`;
}

/** One delivery on one line, and its last attempt when it is known. */
export function deliveryLine(delivery: Delivery, last?: Attempt, now = new Date()): string {
  const { id, event, status, attempt_count, next_attempt_at } = delivery;
  const parts = [
    paint(styles[status], status.padEnd("succeeded".length)),
    printable(event),
    id,
    `attempt ${attempt_count}`,
    ...(last ? [resultOf(last)] : []),
    ...(next_attempt_at !== null && attempt_count > 0 ? [`next ${relativeTime(next_attempt_at, now)}`] : []),
  ];
  const hint = last?.hint ? `\n           ${paint("dim", `→ ${printable(last.hint)}`)}` : "";
  return parts.join("  ") + hint;
}

/** All there is to know about a delivery. */
export function deliveryPage(delivery: DeliveryWithAttempts): string {
  const { id, webhook_id, event, deployment_id, test, created_at, next_attempt_at, attempts, payload } = delivery;
  const head = facts([
    ["id", id],
    ["webhook", webhook_id],
    ["event", test ? `${event} (test)` : event],
    ["deployment", deployment_id],
    ["status", statusCell(delivery)],
    ["created", `${created_at} (${relativeTime(created_at)})`],
    ["next attempt", next_attempt_at === null ? undefined : `${next_attempt_at} (${relativeTime(next_attempt_at)})`],
  ]);
  const made = attempts.map((attempt) => {
    const mark = attempt.error_code === null ? paint("green", "✔") : paint("red", "✘");
    const lines = [`${mark} ${attempt.number}  ${attempt.at}  ${resultOf(attempt)}  ${paint("dim", attempt.trigger)}`];
    if (attempt.hint !== null) lines.push(`     ${paint("dim", `→ ${printable(attempt.hint)}`)}`);
    if (attempt.response_excerpt)
      lines.push(`     ${paint("dim", "answered:")} ${printable(attempt.response_excerpt)}`);
    return lines.join("\n");
  });
  const title = (text: string) => `\n${paint("bold", text)}`;
  return [
    head,
    title("Attempts"),
    ...(made.length === 0 ? ["none yet"] : made),
    title("Payload"),
    jsonText(payload, 2),
  ].join("\n");
}
