import { createHmac } from "node:crypto";
import { httpSignatureHeaders, publicStandardSignature } from "./public-key-signature.ts";
import type { SignatureScheme, SignedDelivery, Signing } from "./signing.ts";

/*
 * The two signatures of every delivery, created with the same secret, unless its webhook has chosen others:
 * - `X-Service-Signature`: HMAC-SHA256 of the body, keyed with the whole secret as text.
 * - `webhook-signature`: Standard Webhooks. It also covers id and time, so that a receiver can reject a replay.
 *   https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md
 */

/**
 * Returns the signature headers of an attempt. During a rotation the previous secrets sign as well, so that a receiver
 * with any of them can verify.
 * @param previous unexpired previous secrets, newest first. Their signatures are separated by a comma in
 *   `X-Service-Signature-Previous`, and by a space in `webhook-signature`.
 * @param signing absent = with the secrets only
 */
export function signatureHeaders(
  signed: SignedDelivery,
  current: string,
  previous: string[] = [],
  signing?: Signing,
): Record<string, string> {
  const timestamp = String(Math.floor(signed.at.getTime() / 1000));
  const isUsed = (scheme: SignatureScheme) => (signing?.schemes ?? ["hmac"]).includes(scheme);
  const secrets = isUsed("hmac") ? [current, ...previous] : [];
  const [newest, ...older] = secrets.map((secret) => bodySignature(signed.body, secret));
  const standard = secrets.map((secret) => standardSignature(signed, timestamp, secret));
  if (signing && isUsed("ed25519")) standard.push(publicStandardSignature(signed, timestamp, signing.key));
  return {
    ...(newest && { "X-Service-Signature": newest }),
    ...(older.length > 0 && { "X-Service-Signature-Previous": older.join(", ") }),
    "webhook-id": signed.deliveryId,
    "webhook-timestamp": timestamp,
    ...(standard.length > 0 && { "webhook-signature": standard.join(" ") }),
    ...(signing && isUsed("http") && httpSignatureHeaders(signed, signing)),
  };
}

/** Returns `sha256=<lowercase hex>` over the body in UTF-8. The key is the whole secret, including `whsec_`. */
export function bodySignature(body: string, secret: string): string {
  return `sha256=${createHmac("sha256", secret).update(body).digest("hex")}`;
}

/** A secret whose part after `whsec_` is base64, with or without padding: all that this service creates. */
const ENCODED_SECRET = /^whsec_((?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}(?:==)?|[A-Za-z0-9+/]{3}=?)?)$/;

/**
 * Returns `v1,<base64>` over `id.timestamp.body`. The key is the base64-decoded part after `whsec_`. An imported secret without
 * such a part is itself the key, as text.
 */
function standardSignature({ deliveryId, body }: SignedDelivery, timestamp: string, secret: string): string {
  const encoded = ENCODED_SECRET.exec(secret)?.[1];
  // `createHmac` decodes the base64 key itself: 2 µs for a small body, instead of 12 µs with a key in a buffer.
  const hmac = createHmac("sha256", encoded ?? secret, { encoding: encoded === undefined ? "utf8" : "base64" });
  return `v1,${hmac.update(`${deliveryId}.${timestamp}.${body}`).digest("base64")}`;
}

/** Returns the previous secrets that have not expired, in the order given. */
export function unexpiredSecrets(previous: { secret: string; expiresAt: string }[], now: Date): string[] {
  return previous.flatMap(({ secret, expiresAt }) => (Date.parse(expiresAt) > now.getTime() ? [secret] : []));
}
