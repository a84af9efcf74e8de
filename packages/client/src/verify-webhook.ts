import type { components } from "./schema.d.ts";
import { fromBase64, standardKey } from "./verify/standard-key.ts";

/* Verifies the deliveries that a receiver gets, with Web Crypto, so that it runs in Node, browsers and edge runtimes. */

/** The body of a delivery: `data` has the type of its `event`. `deployment_id` of an event about a webhook is null. */
/** The payloads of the events that every platform has, so that `event` decides the type of `data`. One that a platform adds has the same fields. */
export type WebhookPayload = OfKnownEvent<components["schemas"]["DeliveryWithAttempts"]["payload"]>;
type OfKnownEvent<Payload extends { event: string }> = Payload extends unknown
  ? string extends Payload["event"]
    ? never
    : Payload
  : never;

export interface VerifiedWebhook {
  /**
   * Identifies a repeated delivery: the same for every attempt. It is `webhook-id`, or with the scheme `body`, which does not
   * sign that header, the SHA-256 of the body in hex.
   */
  id: string;
  /**
   * The parsed body. The signature proves its origin; its fields are not validated. With `true` in `data.test` it is a test
   * delivery, and nothing happened: respond with 2xx, and otherwise ignore it.
   */
  payload: WebhookPayload;
}

export interface VerifyWebhookOptions {
  /** The raw body, before it is parsed. */
  body: string | Uint8Array | ArrayBuffer;
  /** The headers of the request: `Headers`, pairs, or an object. Names in any case. */
  headers: Iterable<readonly [string, string]> | Record<string, string | readonly string[] | undefined>;
  /** The webhook's whole secret, usually with `whsec_`, or the project's public key, `whpk_…`, or several, of which one must match. */
  secret: string | readonly string[];
  /**
   * `standard`: `webhook-signature` (Standard Webhooks), which covers id, time and body. `body`: `X-Service-Signature`, which
   * covers only the body, so that a replay always verifies. There is no fallback from one to the other: an attacker who
   * replays a delivery would leave out the stronger signature. Default: `standard`.
   */
  scheme?: "standard" | "body";
  /** Max difference between `webhook-timestamp` and now, in both directions. Default: 300. */
  toleranceSeconds?: number;
  /** Default: the current time. */
  now?: Date;
}

const messages = {
  missing_header: "a signature header is missing",
  invalid_timestamp: "webhook-timestamp is not a Unix time in whole seconds",
  timestamp_too_old: "webhook-timestamp is too old: a replay, or this machine's clock is ahead",
  timestamp_too_new: "webhook-timestamp is in the future: this machine's clock is behind",
  no_matching_signature: "no signature matches: the secret is a different one, or the body is not the raw body",
  invalid_payload: "the signature is valid, but the parser does not accept the body as JSON",
};

export type WebhookVerificationCode = keyof typeof messages;

/** The delivery is not accepted. `code` is the failed check. Code and message are not secret. */
export class WebhookVerificationError extends Error {
  override readonly name = "WebhookVerificationError";
  readonly code: WebhookVerificationCode;
  /** Status of the response: 401 if the delivery is not authentic, 400 for `invalid_payload`, which is. */
  readonly status: 400 | 401;

  constructor(code: WebhookVerificationCode) {
    super(messages[code]);
    this.code = code;
    this.status = code === "invalid_payload" ? 400 : 401;
  }
}

/**
 * Verifies a delivery and parses its body.
 * @throws WebhookVerificationError Respond with its `status`.
 * @throws TypeError An argument is not valid: the body is already parsed, or the secret is malformed. Respond with 500.
 */
export async function verifyWebhook(options: VerifyWebhookOptions): Promise<VerifiedWebhook> {
  const { scheme = "standard" } = options;
  const body = bytesOf(options.body);
  const secrets = secretsOf(options.secret);
  const header = headerReader(options.headers);
  if (scheme !== "standard" && scheme !== "body") throw new TypeError('scheme must be "standard" or "body"');
  const id =
    scheme === "standard"
      ? await verifyStandard(body, secrets, header, options)
      : await verifyBody(body, secrets, header);
  return { id, payload: parse(body) };
}

type Bytes = Uint8Array<ArrayBuffer>;
type ReadHeader = (lowerCaseName: string) => string | undefined;

/**
 * The key is the part of the secret after `whsec_`, decoded from base64, or the text of a secret without such a part.
 * https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md
 */
async function verifyStandard(
  body: Bytes,
  secrets: readonly string[],
  header: ReadHeader,
  { toleranceSeconds = 300, now = new Date() }: VerifyWebhookOptions,
): Promise<string> {
  const id = required(header, "webhook-id");
  const timestamp = required(header, "webhook-timestamp");
  const signatures = required(header, "webhook-signature").split(/,?\s+/);
  if (!/^[0-9]{1,12}$/.test(timestamp)) throw new WebhookVerificationError("invalid_timestamp");
  const ageSeconds = Math.floor(now.getTime() / 1000) - Number(timestamp);
  // Written with `!` so that an invalid `now` (NaN) fails the check.
  if (!(ageSeconds <= toleranceSeconds)) throw new WebhookVerificationError("timestamp_too_old");
  if (!(ageSeconds >= -toleranceSeconds)) throw new WebhookVerificationError("timestamp_too_new");
  const macs = signatures.flatMap((text) => {
    const base64 = /^v1,([A-Za-z0-9+/]{43}=)$/.exec(text)?.[1];
    return base64 === undefined ? [] : [fromBase64(base64)];
  });
  const content = new Uint8Array(await new Blob([`${id}.${timestamp}.`, body]).arrayBuffer());
  for (const key of secrets.filter(isPublicKey)) if (await isSignedBy(key, content, signatures)) return id;
  await requireMatch(secrets.filter(isHmacKey).map(standardKey), content, macs);
  return id;
}

/** Rejects a public key as a secret: it is published, so any caller could sign with it. */
const isHmacKey = (text: string): boolean => !isPublicKey(text);
const isPublicKey = (text: string): boolean => text.startsWith("whpk_");

/** The public key of a project, `whpk_` and the key in base64, verifies the signatures `v1a`. */
async function isSignedBy(text: string, content: Bytes, signatures: readonly string[]): Promise<boolean> {
  const raw = fromBase64(text.slice("whpk_".length));
  const key = await crypto.subtle.importKey("raw", raw, "Ed25519", false, ["verify"]);
  const given = signatures.flatMap((each) => /^v1a,([A-Za-z0-9+/]{86}==)$/.exec(each)?.[1] ?? []);
  const results = given
    .slice(0, MAX_SIGNATURES)
    .map((base64) => crypto.subtle.verify("Ed25519", key, fromBase64(base64), content));
  return (await Promise.all(results)).includes(true);
}

/** The key is the whole secret as text. */
async function verifyBody(body: Bytes, secrets: readonly string[], header: ReadHeader): Promise<string> {
  const given = [required(header, "x-service-signature"), header("x-service-signature-previous")].join(",");
  const macs = given.split(/,\s*/).flatMap((text) => {
    const hex = /^sha256=([0-9a-f]{64})$/.exec(text)?.[1];
    return hex === undefined ? [] : [Uint8Array.from(hex.match(/../g) ?? [], (byte) => Number.parseInt(byte, 16))];
  });
  await requireMatch(secrets.filter(isHmacKey).map(fromText), body, macs);
  const hash = new Uint8Array(await crypto.subtle.digest("SHA-256", body));
  return Array.from(hash, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

const fromText = (text: string): Bytes => new TextEncoder().encode(text);

function required(header: ReadHeader, name: string): string {
  const value = header(name);
  if (!value) throw new WebhookVerificationError("missing_header");
  return value;
}

/** A delivery has at most four. Each costs an HMAC of the whole body, and a header of a stranger can have hundreds. */
const MAX_SIGNATURES = 10;

/**
 * Verifies each signature with each key. `verify` compares in constant time.
 * https://w3c.github.io/webcrypto/#hmac-operations-verify
 */
async function requireMatch(keys: Bytes[], content: Bytes, macs: Bytes[]): Promise<void> {
  const algorithm = { name: "HMAC", hash: "SHA-256" };
  const imported = await Promise.all(
    keys.map((key) => crypto.subtle.importKey("raw", key, algorithm, false, ["verify"])),
  );
  const results = await Promise.all(
    imported.flatMap((key) =>
      macs.slice(0, MAX_SIGNATURES).map((mac) => crypto.subtle.verify("HMAC", key, mac, content)),
    ),
  );
  if (!results.includes(true)) throw new WebhookVerificationError("no_matching_signature");
}

function parse(body: Bytes): WebhookPayload {
  try {
    return JSON.parse(new TextDecoder("utf-8", { ignoreBOM: true }).decode(body));
  } catch {
    throw new WebhookVerificationError("invalid_payload");
  }
}

function bytesOf(body: unknown): Bytes {
  if (typeof body === "string") return fromText(body);
  if (body instanceof Uint8Array) return Uint8Array.from(body);
  if (Object.prototype.toString.call(body) === "[object ArrayBuffer]") return new Uint8Array(body as ArrayBuffer);
  throw new TypeError("body must be the raw body, a string or bytes: verify it before it is parsed");
}

function secretsOf(secret: unknown): readonly string[] {
  const secrets: unknown[] = Array.isArray(secret) ? secret : [secret];
  const valid = secrets.filter((each) => typeof each === "string" && isSecret(each));
  if (valid.length > 0 && valid.length === secrets.length) return valid as string[];
  throw new TypeError(
    "secret must be the complete secret (16 bytes or more) without surrounding whitespace, or an array of secrets",
  );
}

/** The secret of an imported webhook can be any text. */
const isSecret = (text: string): boolean => text === text.trim() && fromText(text).length >= 16;

function headerReader(headers: VerifyWebhookOptions["headers"]): ReadHeader {
  const found = new Map<string, string>();
  const pairs: Iterable<readonly [string, unknown]> =
    typeof (headers as Iterable<unknown>)[Symbol.iterator] === "function"
      ? (headers as Iterable<readonly [string, string]>)
      : Object.entries(headers);
  for (const [name, value] of pairs) {
    if (value === undefined || value === null) continue;
    const key = name.toLowerCase();
    const before = found.get(key);
    const text = Array.isArray(value) ? value.join(", ") : String(value);
    found.set(key, before === undefined ? text : `${before}, ${text}`);
  }
  return (name) => found.get(name);
}
