import { createHash, sign } from "node:crypto";
import type { ProjectKey } from "./project-key.ts";
import { normalizedUrl } from "./receiver-url.ts";
import type { SignedDelivery, Signing } from "./signing.ts";

/*
 * Signatures that a receiver verifies with a public key, so that it has no secret: `v1a` of Standard Webhooks, and HTTP
 * Message Signatures (RFC 9421), which also say for which URL a request is.
 * https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md#asymmetric
 */

/** Returns `v1a,<base64>` over `id.timestamp.body`. @param timestamp in seconds, as text */
export function publicStandardSignature(
  { deliveryId, body }: SignedDelivery,
  timestamp: string,
  { privateKey }: ProjectKey,
): string {
  return `v1a,${sign(null, Buffer.from(`${deliveryId}.${timestamp}.${body}`), privateKey).toString("base64")}`;
}

/** How long after the request a signature is valid, as replays of the other signatures. */
const VALID_SECONDS = 300;

/**
 * Of bots that a content delivery network may know.
 * https://datatracker.ietf.org/doc/draft-meunier-web-bot-auth-architecture/
 */
const TAG = "web-bot-auth";

/**
 * Returns the headers of an HTTP Message Signature over method, target, body and id of a request.
 */
export function httpSignatureHeaders(
  { deliveryId, at, body }: SignedDelivery,
  { url, key: { privateKey, jwk }, directory }: Signing,
): Record<string, string> {
  // As receiver-client.ts requests it: a lone `?` and the root dot of the host do not reach the receiver.
  const { protocol, host, pathname, search } = new URL(normalizedUrl(url));
  const created = Math.floor(at.getTime() / 1000);
  const digest = `sha-256=:${createHash("sha256").update(body).digest("base64")}:`;
  // Without the type, a verifier takes the value for an origin and ignores one with a path.
  // https://datatracker.ietf.org/doc/draft-meunier-webbotauth-httpsig-protocol/
  const agent = `sig1="${directory}";type=jwks_uri`;
  const covered = {
    "@method": "POST",
    "@authority": host,
    "@target-uri": `${protocol}//${host}${pathname}${search}`,
    "content-digest": digest,
    "webhook-id": deliveryId,
    "signature-agent": agent,
  };
  const names = Object.keys(covered).map((name) => `"${name}"`);
  const parameters = `(${names.join(" ")});created=${created};expires=${created + VALID_SECONDS};keyid="${jwk.kid}";alg="ed25519";tag="${TAG}"`;
  const lines = Object.entries(covered).map(([name, value]) => `"${name}": ${value}`);
  const base = [...lines, `"@signature-params": ${parameters}`].join("\n");
  return {
    // RFC 9530.
    "Content-Digest": digest,
    "Signature-Agent": agent,
    "Signature-Input": `sig1=${parameters}`,
    Signature: `sig1=:${sign(null, Buffer.from(base), privateKey).toString("base64")}:`,
  };
}
