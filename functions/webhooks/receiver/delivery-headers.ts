import type { LegacySignatureHeader } from "../../foundation/manifest/legacy-signature-header.ts";
import type { OwnHeader } from "../webhook/own-headers.ts";
import { bodySignature, signatureHeaders } from "./signature.ts";
import type { Signing } from "./signing.ts";

interface DeliveryRequest {
  id: string;
  event: string;
  /** As it is sent: the signatures are over these bytes. */
  body: string;
  /** Absent = JSON. */
  contentType?: string | undefined;
  /** Decimal digits, larger for a newer event of the same deployment. */
  sequence: string;
  /** Whether the event is a sample. Its `data.test` is then true: the signatures do not cover the header. */
  test?: boolean;
}

/** Of all requests to receivers. */
export const USER_AGENT = "Deployment-Webhooks/1.0";

interface SigningOptions {
  /** Header that has the value of `X-Service-Signature` too, until its date; absent = none. */
  legacy?: LegacySignatureHeader | undefined;
  /** Absent = with the secrets only. */
  signing?: Signing | undefined;
}

/**
 * Returns the headers of a request to a receiver, without those of HTTP itself and those that a user has added.
 * @param secrets the current secret, and the unexpired previous ones, newest first
 * @param at time of the request
 */
export function deliveryHeaders(
  { id, event, body, contentType = "application/json", sequence, test }: DeliveryRequest,
  [current, ...previous]: readonly [string, ...string[]],
  at: Date,
  { legacy, signing }: SigningOptions = {},
): Record<string, string> {
  const hasLegacy = legacy && at < new Date(legacy.until) && (signing?.schemes.includes("hmac") ?? true);
  return {
    "Content-Type": contentType,
    "User-Agent": USER_AGENT,
    "X-Service-Event": event,
    "X-Service-Delivery": id,
    "X-Service-Sequence": sequence,
    ...(test && { "X-Service-Test": "true" }),
    ...signatureHeaders({ deliveryId: id, at, body }, current, previous, signing),
    ...(hasLegacy && { [legacy.name]: bodySignature(body, current) }),
  };
}

/**
 * Returns the headers that a user has added to the requests of a webhook.
 * @param legacy has a name that a user may have chosen before it was an option of the stage: the stage's is sent
 */
export const ownHeaders = (added: readonly OwnHeader[] = [], legacy?: LegacySignatureHeader): readonly OwnHeader[] =>
  added.filter(([name]) => name.toLowerCase() !== legacy?.name.toLowerCase());

/**
 * Returns what a response may not show of these headers: each value, what follows a scheme such as `Bearer`, and of `Basic` the user name
 * with the password, and the password.
 */
export const credentialsIn = (headers: readonly OwnHeader[]): string[] =>
  headers.flatMap(([, value]) => {
    const credential = value.replace(/^[\w-]+ +/, "");
    if (!/^basic /i.test(value)) return [value, credential];
    const decoded = Buffer.from(credential, "base64").toString();
    return [value, credential, decoded, decoded.slice(decoded.indexOf(":") + 1)].filter(Boolean);
  });
