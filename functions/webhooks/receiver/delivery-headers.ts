import type { LegacySignatureHeader } from "../../foundation/manifest/legacy-signature-header.ts";
import { bodySignature, signatureHeaders } from "./signature.ts";

interface DeliveryRequest {
  id: string;
  event: string;
  body: string;
  /** Whether the event is a sample. Its `data.test` is then true: the signatures do not cover the header. */
  test?: boolean;
}

/**
 * Returns the headers of a request to a receiver, without those of HTTP itself.
 * @param secrets the current secret, and the unexpired previous ones, newest first
 * @param at time of the request
 * @param legacy header that has the value of `X-Service-Signature` too, until its date; absent = none
 */
export function deliveryHeaders(
  { id, event, body, test }: DeliveryRequest,
  [current, ...previous]: readonly [string, ...string[]],
  at: Date,
  legacy?: LegacySignatureHeader,
): Record<string, string> {
  return {
    "Content-Type": "application/json",
    "User-Agent": "Deployment-Webhooks/1.0",
    "X-Service-Event": event,
    "X-Service-Delivery": id,
    ...(test && { "X-Service-Test": "true" }),
    ...signatureHeaders({ deliveryId: id, at, body }, current, previous),
    ...(legacy && at < new Date(legacy.until) && { [legacy.name]: bodySignature(body, current) }),
  };
}
