import { createHmac } from "node:crypto";
import { bodySignature, signatureHeaders } from "../../functions/receivers/signature.ts";

/*
 * The test vectors of docs/vectors.json: valid deliveries, and deliveries that a receiver must reject. The valid ones are
 * signed by the service's own code. There is no clock and no randomness: every run writes the same file.
 */

export type Failure =
  | "missing_header"
  | "timestamp_too_old"
  | "timestamp_too_new"
  | "invalid_timestamp"
  | "no_matching_signature";

export interface Vector {
  name: string;
  scheme: "standard" | "body";
  /** The secrets that the receiver knows. */
  secrets: string[];
  /** The raw body, in UTF-8. */
  body: string;
  headers: Record<string, string>;
  /** The receiver's clock, Unix time in seconds. */
  now: number;
  valid: boolean;
  /** It is a test delivery, which the receiver otherwise ignores; absent = it is not. */
  test?: true;
  /** The failed check; absent = valid. */
  error?: Failure;
  /** An explanation, for people. */
  why?: string;
}

const TOLERANCE_SECONDS = 300;
const SENT_AT = 1795233869;
const DELIVERY_ID = "01a1fc46-ece3-7718-84b7-ff6464808948";

const secret = `whsec_${"0123456789abcdef".repeat(4)}`;
const oldSecret = `whsec_${"fedcba9876543210".repeat(4)}`;
const olderSecret = `whsec_${"00112233445566778899aabbccddeeff".repeat(2)}`;
const foreignSecret = `whsec_${"deadbeef".repeat(8)}`;

/** Secrets of imported webhooks, with and without a part after `whsec_` that is base64. */
const imported: [name: string, secret: string, key: "base64" | "text"][] = [
  ["text without whsec_", "0123456789abcdef".repeat(4), "text"],
  ["text after whsec_ that is not base64", "whsec_old-platform.signing_key", "text"],
  ["text after whsec_ of a length that base64 does not have", "whsec_0123456789abcdef0", "text"],
  ["text beyond ASCII", "clé-de-signature-✓", "text"],
  ["base64 with padding after whsec_", "whsec_b2xkIHBsYXRmb3Jt+/A=", "base64"],
  ["base64 without padding after whsec_", "whsec_b2xkIHBsYXRmb3JtIQ", "base64"],
];

const event = (data: string) =>
  '{"event":"deploy.succeeded","project_id":"0198c2a4-7b1e-7c55-9f3d-2a6b8c4d0e11","deployment_id":"0198c2a4-9d02-7a10-8c44-51f0b7e6d322",' +
  `"timestamp":"2026-11-21T04:04:29.027Z","data":${data}}`;
const body = event('{"url":"https://my-shop.example.app","status":"running"}');
const unicodeBody = event('{"url":"https://my-shop.example.app","status":"running","message":"Grüße, 世界 🚀"}');
const spacedBody = event('{ "url": "https://my-shop.example.app",\\n  "status": "running" }').replace("\\n", "\n");

const testBody = event('{"url":"https://demo.example.com","status":"running","test":true}');
const testHeader = { "X-Service-Test": "true" };

const webhookEventBody =
  '{"event":"webhook.disabled","project_id":"0198c2a4-7b1e-7c55-9f3d-2a6b8c4d0e11","deployment_id":null,"timestamp":"2026-11-21T04:04:29.027Z",' +
  '"data":{"webhook_id":"0198c2a4-8c11-7f3a-b0d2-6e1f5a7c9b40","host":"hooks.example.com","failing_since":null,"status_code":null,"error_code":null,"reason":"manual"}}';

const bodies: [name: string, body: string][] = [
  ["one event", body],
  ["an event about a webhook, whose deployment_id is null", webhookEventBody],
  ["only an empty object", "{}"],
  ["umlauts, Chinese and an emoji, in UTF-8", unicodeBody],
  ["the same text with escapes, which are different bytes", escaped(unicodeBody)],
  ["a newline at the end", `${body}\n`],
  ["spaces and newlines between the tokens", spacedBody],
  [
    "numbers beyond double precision, in several notations",
    event('{"url":"https://a.example","status":"running","build":9007199254740993,"share":1.0,"size":1E40}'),
  ],
  [
    "an escaped slash and an escaped quote",
    event('{"url":"https:\\/\\/my-shop.example.app","status":"running","message":"it said \\"hello\\""}'),
  ],
  [
    "the line separators U+2028 and U+2029",
    event('{"url":"https://a.example","status":"running","message":"\u2028\u2029"}'),
  ],
];

interface SigningOptions {
  body?: string;
  /** Newest first. */
  signedWith?: string[];
  at?: number;
}

/** Returns the headers of a delivery. */
function signedHeaders({
  body: text = body,
  signedWith = [secret],
  at = SENT_AT,
}: SigningOptions = {}): Record<string, string> {
  const [current = secret, ...previous] = signedWith;
  return signatureHeaders({ deliveryId: DELIVERY_ID, at: new Date(at * 1000), body: text }, current, previous);
}

type Case = { name: string; error?: Failure; why?: string; test?: true } & Partial<
  Pick<Vector, "secrets" | "body" | "headers" | "now">
>;

/** Cases with the same result for both schemes. */
const bothSchemes: Case[] = [
  ...bodies.map(([name, text]) => ({
    name: `the body contains ${name}`,
    body: text,
    headers: signedHeaders({ body: text }),
  })),
  {
    name: "a test delivery",
    body: testBody,
    headers: { ...testHeader, ...signedHeaders({ body: testBody }) },
    test: true,
    why: "data.test is true",
  },
  {
    name: "an event whose request has the header of a test delivery",
    headers: { ...testHeader, ...signedHeaders() },
    why: "the signature does not cover the header: data.test decides",
  },
  {
    name: "the header names are in upper case",
    headers: Object.fromEntries(Object.entries(signedHeaders()).map(([name, value]) => [name.toUpperCase(), value])),
  },
  { name: "the receiver knows the new and the old secret", secrets: [secret, oldSecret] },
  {
    name: "rotated: signed with both secrets, and the receiver knows the old one",
    secrets: [oldSecret],
    headers: signedHeaders({ signedWith: [secret, oldSecret] }),
  },
  {
    name: "rotated: signed with both secrets, and the receiver knows the new one",
    headers: signedHeaders({ signedWith: [secret, oldSecret] }),
  },
  {
    name: "rotated twice: signed with three secrets, and the receiver knows the oldest",
    secrets: [olderSecret],
    headers: signedHeaders({ signedWith: [secret, oldSecret, olderSecret] }),
  },
  {
    name: "rotated without an overlap, and the receiver knows both secrets",
    secrets: [oldSecret, secret],
  },
  {
    name: "the receiver knows only the old secret, and the overlap has ended",
    secrets: [oldSecret],
    error: "no_matching_signature",
    why: "the delivery is signed only with the new secret",
  },
  {
    name: "rotated twice, and the receiver knows another secret",
    secrets: [foreignSecret],
    headers: signedHeaders({ signedWith: [secret, oldSecret, olderSecret] }),
    error: "no_matching_signature",
    why: "none of the three secrets is known to the receiver",
  },
  ...imported.map(([name, text]) => ({
    name: `the secret of an imported webhook is ${name}`,
    secrets: [text],
    headers: signedHeaders({ signedWith: [text] }),
  })),
  ...alterations(),
];

/** Bodies that differ from the signed one, although some look the same. */
function alterations(): Case[] {
  const rows: [name: string, signed: string, arrived: string, why: string][] = [
    ["one character of the body was changed", body, body.replace("running", "runninG"), "the body was tampered with"],
    ["the body was cut short", body, body.slice(0, -1), "the body was tampered with"],
    ["the newline at the end was trimmed", `${body}\n`, body, "the signature covers the newline too"],
    ["a newline was added", body, `${body}\n`, "reading a file or a shell variable added a newline"],
    ["newlines were converted to CR LF", spacedBody, spacedBody.replaceAll("\n", "\r\n"), "the body was read as text"],
    [
      "the body was parsed and serialized again",
      spacedBody,
      JSON.stringify(JSON.parse(spacedBody)),
      "serializing removes the spaces",
    ],
    ["the body was serialized with escapes", unicodeBody, escaped(unicodeBody), "the same JSON in different bytes"],
    ["the body was read as Latin-1", unicodeBody, Buffer.from(unicodeBody).toString("latin1"), "the body is UTF-8"],
    ["a byte order mark was added to the body", body, `\ufeff${body}`, "it adds three bytes"],
    ["the body is empty", body, "", "other code consumed it before the verification"],
  ];
  return rows.map(([name, signed, arrived, why]) => ({
    name,
    body: arrived,
    headers: signedHeaders({ body: signed }),
    error: "no_matching_signature",
    why,
  }));
}

const standardSignature = (key: Buffer | string, timestamp = String(SENT_AT)) =>
  `v1,${createHmac("sha256", key).update(`${DELIVERY_ID}.${timestamp}.${body}`).digest("base64")}`;
const afterPrefix = secret.slice("whsec_".length);
const standardKey = Buffer.from(afterPrefix, "base64");
const goodStandard = signedHeaders()["webhook-signature"] ?? "";
const withStandard = (signature: string) => ({ ...signedHeaders(), "webhook-signature": signature });

const standardScheme: Case[] = [
  {
    name: "the signature is in base64url",
    body: "{}",
    headers: {
      ...signedHeaders({ body: "{}" }),
      "webhook-signature": base64url(signedHeaders({ body: "{}" })["webhook-signature"]),
    },
    error: "no_matching_signature",
    why: "standard base64, with + and /, is required",
  },
  {
    name: "a signature of an unknown version precedes the valid one",
    headers: withStandard(`v1a,${"A".repeat(86)}== ${goodStandard}`),
  },
  {
    name: "the secret of an imported webhook has no whsec_, and the key is decoded from base64",
    secrets: [afterPrefix],
    error: "no_matching_signature",
    why: "wrong key: only the part after whsec_ is decoded",
  },
  { name: "as old as the tolerance allows", now: SENT_AT + TOLERANCE_SECONDS },
  { name: "as far in the future as the tolerance allows", now: SENT_AT - TOLERANCE_SECONDS },
  {
    name: "one second older than the tolerance allows",
    now: SENT_AT + TOLERANCE_SECONDS + 1,
    error: "timestamp_too_old",
    why: "a replay",
  },
  { name: "a day old", now: SENT_AT + 86_400, error: "timestamp_too_old", why: "a replay" },
  {
    name: "one second further in the future than the tolerance allows",
    now: SENT_AT - TOLERANCE_SECONDS - 1,
    error: "timestamp_too_new",
    why: "one of the clocks is wrong",
  },
  {
    name: "replayed with the current time",
    headers: { ...signedHeaders(), "webhook-timestamp": String(SENT_AT + 86_400) },
    now: SENT_AT + 86_400,
    error: "no_matching_signature",
    why: "the signature covers the time",
  },
  {
    name: "replayed with another id",
    headers: { ...signedHeaders(), "webhook-id": "01a1fc46-ece3-7718-84b7-ff6464808949" },
    error: "no_matching_signature",
    why: "the signature covers the id",
  },
  ...["yesterday", `${SENT_AT}.0`, `+${SENT_AT}`, `${SENT_AT} 0`, `${SENT_AT}000000`].map(
    (timestamp): Case => ({
      name: `the timestamp is ${timestamp}`,
      // The signature matches the malformed text: a receiver that signs the parsed number rejects it by the signature.
      headers: { ...withStandard(standardSignature(standardKey, timestamp)), "webhook-timestamp": timestamp },
      error: "invalid_timestamp",
      why: "not a Unix time in whole seconds, of at most 12 digits",
    }),
  ),
  ...["webhook-id", "webhook-timestamp", "webhook-signature"].map(
    (name): Case => ({
      name: `${name} is missing`,
      headers: without(name),
      error: "missing_header",
      why: "there is no substitute for it",
    }),
  ),
  {
    name: "the signature is empty",
    headers: withStandard(""),
    error: "missing_header",
    why: "there is no signature to compare",
  },
  ...rejected("webhook-signature", [
    [
      "the key is the whole secret, as for X-Service-Signature",
      standardSignature(secret),
      "wrong key: decode the part after whsec_ from base64",
    ],
    ["the key is the text after whsec_", standardSignature(afterPrefix), "wrong key: decode this text from base64"],
    [
      "the key is decoded from hex",
      standardSignature(Buffer.from(afterPrefix, "hex")),
      "wrong key: it looks like hex, but decode it from base64",
    ],
    [
      "only the body was signed",
      `v1,${createHmac("sha256", standardKey).update(body).digest("base64")}`,
      "the signature covers id and time too",
    ],
    [
      "the signature is in hex",
      `v1,${Buffer.from(goodStandard.slice(3), "base64").toString("hex")}`,
      "base64 is required",
    ],
    ["the padding of the signature is missing", goodStandard.replace(/=$/, ""), "signatures are compared as text"],
    ["the signature was cut short", goodStandard.slice(0, 20), "the whole signature is compared"],
    ["the signature is only a version", "v1,", "there is no signature to compare"],
    ["the signature has no version", goodStandard.slice(3), "the prefix v1, is required"],
    ["the signature has another version", goodStandard.replace("v1,", "v2,"), "only v1 is supported"],
    ["the signature is not ASCII", "v1,Grüße", "reject it like any other wrong signature"],
  ]),
];

const bodyHmac = (key: Buffer | string) => `sha256=${createHmac("sha256", key).update(body).digest("hex")}`;
const goodBody = bodySignature(body, secret);
const withBody = (signature: string) => ({ ...signedHeaders(), "X-Service-Signature": signature });

const bodyScheme: Case[] = [
  {
    name: "a day old",
    now: SENT_AT + 86_400,
    why: "this scheme does not sign the time, so it cannot detect a replay",
  },
  {
    name: "replayed with another id and time",
    headers: { ...signedHeaders(), "webhook-id": "another", "webhook-timestamp": "0" },
    why: "this scheme signs only the body: detect a repeated body by its hash",
  },
  { name: "webhook-signature is missing", headers: without("webhook-signature"), why: "this scheme does not use it" },
  {
    name: "X-Service-Signature is missing",
    headers: without("X-Service-Signature"),
    error: "missing_header",
    why: "the other signature is no substitute",
  },
  {
    name: "the signature is empty",
    headers: withBody(""),
    error: "missing_header",
    why: "there is no signature to compare",
  },
  ...rejected("X-Service-Signature", [
    ["the key is the text after whsec_", bodyHmac(afterPrefix), "wrong key: whsec_ is part of the key"],
    [
      "the key is decoded from base64",
      bodyHmac(Buffer.from(afterPrefix, "base64")),
      "wrong key: the key is the whole secret, as text",
    ],
    [
      "the key is decoded from hex",
      bodyHmac(Buffer.from(afterPrefix, "hex")),
      "wrong key: the key is the whole secret, as text",
    ],
    [
      "the signature is in upper case",
      `sha256=${goodBody.slice(7).toUpperCase()}`,
      "lower case hex is required; signatures are compared as text",
    ],
    [
      "the signature is in base64",
      `sha256=${Buffer.from(goodBody.slice(7), "hex").toString("base64")}`,
      "hex is required",
    ],
    ["the prefix sha256= is missing", goodBody.slice(7), "the prefix sha256= is required"],
    ["the signature was cut short", goodBody.slice(0, 39), "the whole signature is compared"],
    ["the signature is only sha256=", "sha256=", "there is no signature to compare"],
    ["the signature is not ASCII", "sha256=Grüße", "reject it like any other wrong signature"],
  ]),
  {
    name: "the previous signature matches and the current does not",
    headers: { ...withBody(bodySignature(body, foreignSecret)), "X-Service-Signature-Previous": goodBody },
    why: "one matching signature is enough",
  },
  {
    name: "the previous signatures do not match either",
    headers: signedHeaders({ signedWith: [oldSecret, olderSecret, foreignSecret] }),
    error: "no_matching_signature",
    why: "none of the three secrets is known to the receiver",
  },
];

function rejected(header: string, rows: [name: string, value: string, why: string][]): Case[] {
  return rows.map(([name, value, why]) => ({
    name,
    headers: { ...signedHeaders(), [header]: value },
    error: "no_matching_signature",
    why,
  }));
}

/** Converts base64 to base64url. @throws Error if both are the same: the vector would test nothing */
function base64url(signature = ""): string {
  const changed = signature.replaceAll("+", "-").replaceAll("/", "_");
  if (changed === signature) throw new Error("The signature contains neither + nor /.");
  return changed;
}

function without(name: string): Record<string, string> {
  return Object.fromEntries(Object.entries(signedHeaders()).filter(([each]) => each !== name));
}

/** The same JSON in ASCII, as Python's json.dumps writes it. */
function escaped(text: string): string {
  return text.replaceAll(/[\u0080-\uffff]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

function vector(scheme: Vector["scheme"], { name, error, why, test, ...rest }: Case): Vector {
  const given = { secrets: [secret], body, headers: signedHeaders(), now: SENT_AT + 1, ...rest };
  const verdict = {
    valid: error === undefined,
    ...(test && { test }),
    ...(error && { error }),
    ...(why !== undefined && { why }),
  };
  return { name: `${scheme}: ${name}`, scheme, ...given, ...verdict };
}

/** The keys derived from a secret, in hex, to compare with those that a receiver derives. */
function keysOf(text: string, key: "base64" | "text" = "base64") {
  const standard = key === "text" ? Buffer.from(text) : Buffer.from(text.slice("whsec_".length), "base64");
  const [body_key_hex, standard_key_hex] = [Buffer.from(text), standard].map((bytes) => bytes.toString("hex"));
  return { secret: text, body_key_hex, standard_key_hex };
}

/** Returns the text of docs/vectors.json. */
export function vectorsText(): string {
  const vectors = [
    ...[...bothSchemes, ...standardScheme].map((each) => vector("standard", each)),
    ...[...bothSchemes, ...bodyScheme].map((each) => vector("body", each)),
  ];
  const keys = [secret, oldSecret, olderSecret, foreignSecret].map((each) => keysOf(each));
  keys.push(...imported.map(([, text, key]) => keysOf(text, key)));
  const file = { about: "docs/receivers/README.md", tolerance_seconds: TOLERANCE_SECONDS, keys, vectors };
  const text = JSON.stringify(file, null, 2).replaceAll("\u2028", "\\u2028").replaceAll("\u2029", "\\u2029");
  // The repository's formatter puts short arrays on one line.
  return `${text.replaceAll(/\[\n\s+("[^"\n]*")\n\s+\]/g, "[$1]")}\n`;
}
