import { createHash } from "node:crypto";
import { outcomeIn, stateAfterEvent } from "../../../client/src/deployment-timeline.ts";
import { type Scheme, serviceSignature, signatureOf, standardWebhooks } from "../verify/signature-schemes.ts";

/* Deliveries as the service sends them, for receivers that the service cannot reach. Pure. */

export interface LocalDelivery {
  id: string;
  event: string;
  /** Whether it is a test delivery; default: it is not. */
  test?: boolean;
  body: Buffer;
}

/**
 * Returns the id of the delivery of an event to a receiver on this machine. The same event has the same id in every run, so
 * that a receiver recognizes a repetition. Like the ids of the service, it begins with the time of the event.
 */
export function localDeliveryId(eventId: string): string {
  const hash = createHash("sha256").update(`svc listen ${eventId}`).digest("hex");
  // UUID version 7: https://www.rfc-editor.org/rfc/rfc9562#section-5.7
  return `${eventId.slice(0, 13)}-7${hash.slice(0, 3)}-8${hash.slice(3, 6)}-${hash.slice(6, 18)}`;
}

/**
 * Returns the headers of a delivery, as the service sends them.
 * @param secrets the current one first; the others sign as during a rotation
 * @param at the time of the request
 */
export function deliveryHeaders(
  { id, event, test, body }: LocalDelivery,
  [current = "", ...previous]: string[],
  at: Date,
): Record<string, string> {
  const input = { id, timestamp: String(Math.floor(at.getTime() / 1000)), body };
  const sign = (scheme: Scheme) => (secret: string) => signatureOf(scheme, secret, input);
  const older = previous.map(sign(serviceSignature)).join(", ");
  const all = [current, ...previous].map(sign(standardWebhooks));
  return {
    "Content-Type": "application/json",
    "User-Agent": "Deployment-Webhooks/1.0",
    "X-Service-Event": event,
    "X-Service-Delivery": id,
    "X-Service-Sequence": String(timeOf(id) * 10 + (isFinal(event) ? 1 : 0)),
    ...(test && { "X-Service-Test": "true" }),
    "X-Service-Signature": signatureOf(serviceSignature, current, input),
    ...(older !== "" && { "X-Service-Signature-Previous": older }),
    "webhook-id": id,
    "webhook-timestamp": input.timestamp,
    "webhook-signature": all.join(" "),
  };
}

/** The ids begin with the time of the event in milliseconds. */
const timeOf = (id: string): number => Number.parseInt(id.replace("-", "").slice(0, 12), 16);

const isFinal = (event: string): boolean => ["good", "bad"].includes(outcomeIn(stateAfterEvent({ event })));
