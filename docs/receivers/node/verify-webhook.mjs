import { createHash, createHmac, createPublicKey, timingSafeEqual, verify } from "node:crypto";

/* Verifies webhook deliveries of the platform. Copy this file; it needs only Node 18 or later. */

/**
 * @typedef {object} EventFields
 * @property {string} project_id
 * @property {string} timestamp Time of the event, ISO 8601 UTC. Deliveries can arrive out of order.
 *
 * @typedef {object} AboutWebhook
 * @property {string} webhook_id Another webhook of the project: none is notified about itself.
 * @property {string} [name] Its name; absent = it has none.
 * @property {string} host Host of its URL.
 * @property {string | null} failing_since Time of its first failure, ISO 8601 UTC; null = it was not failing.
 * @property {number | null} status_code Status code of the last response; null = none.
 * @property {string | null} error_code Why the last attempt failed; null = no attempt led to the event.
 *
 * @typedef {{ event: "deploy.started", data: Record<string, unknown> }} Started
 * @typedef {{ event: "deploy.succeeded", data: { url: string, status: "running" } & Record<string, unknown> }} Succeeded
 * @typedef {{ event: "deploy.failed", data: Record<string, unknown> }} Failed
 *
 * @typedef {{ event: "webhook.failing", data: AboutWebhook & Record<string, unknown> }} WebhookFailing
 * @typedef {{ event: "webhook.disabled", data: AboutWebhook & { reason: string } & Record<string, unknown> }} WebhookDisabled
 * @typedef {EventFields & { deployment_id: null } & (WebhookFailing | WebhookDisabled)} WebhookEvent
 */

/**
 * An event that the platform adds to those of the service: `{ event: "build.succeeded", data: { artifact: string } }`.
 * @typedef {{ event: string, data: object }} OwnEvent
 */

/**
 * Own events are a type argument, and not any string, so that `event` decides the type of `data`.
 * @template {OwnEvent} [Own=never]
 * @typedef {EventFields & { deployment_id: string } & (Started | Succeeded | Failed | (Own & { data: Record<string, unknown> }))} DeploymentEvent
 */

/**
 * @template {OwnEvent} [Own=never]
 * @typedef {object} Delivery
 * @property {string} id Identifies a repeated delivery: the same for every attempt. It is `webhook-id`, or with the scheme
 *   "body", which does not sign that header, the SHA-256 of the body in hex.
 * @property {DeploymentEvent<Own> | WebhookEvent} payload The parsed body. The signature proves its origin; its fields are not validated.
 *   With `true` in `data.test` it is a test delivery, and nothing happened: respond with 2xx, and otherwise ignore it.
 */

/**
 * @typedef {object} Options
 * @property {string | Uint8Array | ArrayBuffer} body The raw body, not parsed and serialized again.
 * @property {object} headers `Headers`, or an object or array of names and values, in any case.
 * @property {string | string[]} secret The webhook's whole secret, usually with `whsec_`, or the project's public key, `whpk_…`, or
 *   several, of which one must match.
 * @property {"standard" | "body"} [scheme] `"standard"`: `webhook-signature`, which covers id, time and body. `"body"`:
 *   `X-Service-Signature`, which covers only the body, so that a replayed delivery always verifies. There is no fallback
 *   from one to the other: an attacker who replays a delivery would leave out the stronger signature.
 * @property {number} [toleranceSeconds] Max difference between `webhook-timestamp` and now, in both directions. Default 300.
 * @property {Date} [now]
 */

const messages = {
  missing_header: "a signature header is missing",
  invalid_timestamp: "webhook-timestamp is not a Unix time in whole seconds",
  timestamp_too_old: "webhook-timestamp is too old: a replay, or this machine's clock is ahead",
  timestamp_too_new: "webhook-timestamp is in the future: this machine's clock is behind",
  no_matching_signature: "no signature matches: the secret is a different one, or the body is not the raw body",
  invalid_payload: "the signature is valid, but the parser does not accept the body as JSON",
};

/**
 * The delivery is not accepted. `code` is the failed check, `status` the response: 401 if it is not authentic, 400 for
 * `invalid_payload`, which is. Code and message are not secret.
 */
export class WebhookVerificationError extends Error {
  /** @param {keyof typeof messages} code */
  constructor(code) {
    super(messages[code]);
    this.name = "WebhookVerificationError";
    this.code = code;
    this.status = code === "invalid_payload" ? 400 : 401;
  }
}

/**
 * @template {OwnEvent} [Own=never] The platform's own events, if it has any: `verifyWebhook<Own>(…)`.
 * @param {Options} options
 * @returns {Delivery<Own>}
 * @throws {WebhookVerificationError} Respond with its `status`.
 * @throws {TypeError} An argument is not valid: the body is already parsed, or the secret is malformed. Respond with 500.
 */
export function verifyWebhook({
  body,
  headers,
  secret,
  scheme = "standard",
  toleranceSeconds = 300,
  now = new Date(),
}) {
  const bytes = bytesOf(body);
  const secrets = secretsOf(secret);
  const header = headerReader(headers);
  if (scheme !== "standard" && scheme !== "body") throw new TypeError('scheme must be "standard" or "body"');
  const id = scheme === "standard" ? verifyStandard() : verifyBody();
  try {
    return { id, payload: JSON.parse(bytes.toString("utf8")) };
  } catch {
    throw new WebhookVerificationError("invalid_payload");
  }

  /** Standard Webhooks. */
  function verifyStandard() {
    const id = required("webhook-id");
    const timestamp = required("webhook-timestamp");
    const signature = required("webhook-signature");
    if (!/^[0-9]{1,12}$/.test(timestamp)) throw new WebhookVerificationError("invalid_timestamp");
    const ageSeconds = Math.floor(now.getTime() / 1000) - Number(timestamp);
    // Written with `!` so that an invalid `now` (NaN) fails the check.
    if (!(ageSeconds <= toleranceSeconds)) throw new WebhookVerificationError("timestamp_too_old");
    if (!(ageSeconds >= -toleranceSeconds)) throw new WebhookVerificationError("timestamp_too_new");
    const given = signature.split(/,?\s+/);
    const signed = Buffer.concat([Buffer.from(`${id}.${timestamp}.`), bytes]);
    if (secrets.some((each) => isPublicKey(each) && isSignedBy(each, signed, given.slice(0, MAX_SIGNATURES))))
      return id;
    const hmacs = secrets.filter(isSecret).map((each) => createHmac("sha256", standardKey(each)).update(signed));
    requireMatch(
      hmacs.map((hmac) => `v1,${hmac.digest("base64")}`),
      given,
    );
    return id;
  }

  /** The key is the whole secret as text. */
  function verifyBody() {
    const given = [required("x-service-signature"), header("x-service-signature-previous") ?? ""].join(",");
    const expected = secrets
      .filter(isSecret)
      .map((each) => `sha256=${createHmac("sha256", each).update(bytes).digest("hex")}`);
    requireMatch(expected, given.split(/,\s*/));
    return createHash("sha256").update(bytes).digest("hex");
  }

  /** @param {string} name */
  function required(name) {
    const value = header(name);
    if (!value) throw new WebhookVerificationError("missing_header");
    return value;
  }
}

/** A delivery has at most five. A header of a stranger can have hundreds, each of which costs a look at the whole body. */
const MAX_SIGNATURES = 10;

/** Rejects a public key as a secret: it is published, so any caller could sign with it. @param {string} text */
const isSecret = (text) => !isPublicKey(text);
/** @param {string} text */
const isPublicKey = (text) => text.startsWith("whpk_");

/**
 * The public key of a project verifies the signatures `v1a`.
 * @param {string} key `whpk_` and the key in base64
 * @param {Uint8Array} signed
 * @param {string[]} given
 */
function isSignedBy(key, signed, given) {
  const x = Buffer.from(key.slice("whpk_".length), "base64").toString("base64url");
  const publicKey = createPublicKey({ key: { kty: "OKP", crv: "Ed25519", x }, format: "jwk" });
  return given.some(
    (each) => each.startsWith("v1a,") && verify(null, signed, publicKey, Buffer.from(each.slice(4), "base64")),
  );
}

/**
 * The key is the part of the secret after `whsec_`, decoded from base64. Any other secret is the key itself, as text.
 * @param {string} secret
 */
function standardKey(secret) {
  const encoded = /^whsec_((?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}(?:==)?|[A-Za-z0-9+/]{3}=?)?)$/.exec(secret)?.[1];
  return encoded === undefined ? Buffer.from(secret) : Buffer.from(encoded, "base64");
}

/**
 * Compares each expected with each given signature, in constant time per pair.
 * @param {string[]} expected
 * @param {string[]} given
 */
function requireMatch(expected, given) {
  let isMatch = false;
  for (const one of expected.map((text) => Buffer.from(text))) {
    for (const other of given.map((text) => Buffer.from(text))) {
      if (one.length === other.length && timingSafeEqual(one, other)) isMatch = true;
    }
  }
  if (!isMatch) throw new WebhookVerificationError("no_matching_signature");
}

/** @param {Options["body"]} body */
function bytesOf(body) {
  if (typeof body === "string") return Buffer.from(body, "utf8");
  if (ArrayBuffer.isView(body)) return Buffer.from(body.buffer, body.byteOffset, body.byteLength);
  if (Object.prototype.toString.call(body) === "[object ArrayBuffer]") return Buffer.from(body);
  throw new TypeError("body must be the raw body, a string or bytes: verify it before it is parsed");
}

/** @param {Options["secret"]} secret */
function secretsOf(secret) {
  const secrets = Array.isArray(secret) ? secret : [secret];
  const isSecret = (/** @type {unknown} */ each) =>
    typeof each === "string" && each === each.trim() && Buffer.byteLength(each) >= 16;
  if (secrets.length > 0 && secrets.every(isSecret)) return secrets;
  throw new TypeError(
    "secret must be the complete secret (16 bytes or more) without surrounding whitespace, or an array of secrets",
  );
}

/**
 * Returns a lookup for headers given as Fetch's `Headers`, Node's `headers` or `rawHeaders`, a Map, pairs or an object.
 * Repeated headers are joined by ", ", as in Node.
 * @param {any} headers
 * @returns {(lowerCaseName: string) => string | undefined}
 */
function headerReader(headers) {
  /** @type {Map<string, string>} */
  const found = new Map();
  for (const [name, value] of pairsOf(headers)) {
    if (value === undefined || value === null) continue;
    const key = String(name).toLowerCase();
    const before = found.get(key);
    const text = Array.isArray(value) ? value.join(", ") : String(value);
    found.set(key, before === undefined ? text : `${before}, ${text}`);
  }
  return (name) => found.get(name);
}

/**
 * @param {any} headers
 * @returns {Iterable<[string, unknown]>}
 */
function pairsOf(headers) {
  if (!Array.isArray(headers))
    return typeof headers.entries === "function" ? headers.entries() : Object.entries(headers);
  if (Array.isArray(headers[0])) return headers;
  return headers.flatMap((name, index) => (index % 2 === 0 ? [[name, headers[index + 1]]] : []));
}
