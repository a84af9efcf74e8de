import { createHash, createHmac, timingSafeEqual } from "node:crypto";

/* Verifies that a delivery comes from the platform. Copy this file: it needs Node 18 or later, and nothing else. */

/**
 * @typedef {object} EventFields
 * @property {string} project_id
 * @property {string} deployment_id
 * @property {string} timestamp Time of the event, ISO 8601 UTC. Deliveries come out of order.
 *
 * @typedef {{ event: "deploy.started", data: Record<string, unknown> }} Started
 * @typedef {{ event: "deploy.succeeded", data: { url: string, status: "running" } & Record<string, unknown> }} Succeeded
 * @typedef {{ event: "deploy.failed", data: Record<string, unknown> }} Failed
 * @typedef {EventFields & (Started | Succeeded | Failed)} DeploymentEvent
 */

/**
 * @typedef {object} Delivery
 * @property {string} id The same however often the delivery comes: what to recognise a repeated one by. It is `webhook-id`;
 *   in the scheme "body", which does not sign that header, the SHA-256 of the body in hex.
 * @property {DeploymentEvent} payload The parsed body. A signature proves who wrote it; its shape is not looked at.
 */

/**
 * @typedef {object} Options
 * @property {string | Uint8Array | ArrayBuffer} body The body as it came, not parsed and printed again.
 * @property {object} headers `Headers`, or an object or array of names and values, in upper or lower case.
 * @property {string | string[]} secret The webhook's secret, `whsec_` included. Several: any of them may have signed.
 * @property {"standard" | "body"} [scheme] `"standard"`: `webhook-signature`, which covers id, time and body. `"body"`:
 *   `X-Service-Signature`, which covers the body alone, so that a copy of a delivery verifies for ever. There is no
 *   falling back from the one to the other: whoever replays a delivery could leave the better signature out.
 * @property {number} [toleranceSeconds] How far `webhook-timestamp` may be from now, either way. Default 300.
 * @property {Date} [now]
 */

const messages = {
  missing_header: "a header that the signature needs is missing",
  invalid_timestamp: "webhook-timestamp is not a Unix time in whole seconds",
  timestamp_too_old: "webhook-timestamp is too old: a replay, or this machine's clock is ahead",
  timestamp_too_new: "webhook-timestamp is in the future: this machine's clock is behind",
  no_matching_signature: "no signature matches: another secret, or not the body as it came",
  invalid_payload: "the signature holds, and the body is not JSON",
};

/** A delivery that must not be believed. `code` says which check failed; neither code nor message is a secret. */
export class WebhookVerificationError extends Error {
  /** @param {keyof typeof messages} code */
  constructor(code) {
    super(messages[code]);
    this.name = "WebhookVerificationError";
    this.code = code;
  }
}

/**
 * @param {Options} options
 * @returns {Delivery}
 * @throws {WebhookVerificationError} Answer 401.
 * @throws {TypeError} The caller is wrong: the body is parsed already, or the secret is none.
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

  /** Standard Webhooks. The key is what the part of the secret after `whsec_` decodes to in base64. */
  function verifyStandard() {
    const id = required("webhook-id");
    const timestamp = required("webhook-timestamp");
    const signature = required("webhook-signature");
    if (!/^[0-9]{1,12}$/.test(timestamp)) throw new WebhookVerificationError("invalid_timestamp");
    const ageSeconds = Math.floor(now.getTime() / 1000) - Number(timestamp);
    // A clock that is no time compares with nothing, and must not let everything through.
    if (!(ageSeconds <= toleranceSeconds)) throw new WebhookVerificationError("timestamp_too_old");
    if (!(ageSeconds >= -toleranceSeconds)) throw new WebhookVerificationError("timestamp_too_new");
    const expected = secrets.map((each) => {
      const hmac = createHmac("sha256", Buffer.from(each.slice("whsec_".length), "base64"));
      return `v1,${hmac.update(`${id}.${timestamp}.`).update(bytes).digest("base64")}`;
    });
    requireMatch(expected, signature.split(/,?\s+/));
    return id;
  }

  /** The key is the whole secret as text. */
  function verifyBody() {
    const given = [required("x-service-signature"), header("x-service-signature-previous") ?? ""].join(",");
    const expected = secrets.map((each) => `sha256=${createHmac("sha256", each).update(bytes).digest("hex")}`);
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

/**
 * Compares all with all, each pair in constant time.
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
  throw new TypeError("body must be the raw body, a string or bytes: verify before anything parses it");
}

/** @param {Options["secret"]} secret */
function secretsOf(secret) {
  const secrets = Array.isArray(secret) ? secret : [secret];
  const isSecret = (/** @type {unknown} */ each) =>
    typeof each === "string" && /^whsec_[A-Za-z0-9+/]+={0,2}$/.test(each);
  if (secrets.length > 0 && secrets.every(isSecret)) return secrets;
  throw new TypeError("secret must be whsec_ and what follows it, with nothing around it, or an array of such");
}

/**
 * Looks headers up whatever they come in: Fetch's `Headers`, Node's `headers` or `rawHeaders`, a Map, pairs, an object.
 * One that came several times is joined by ", ", as Node does.
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
