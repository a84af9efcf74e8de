import { createHmac } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { bodySignature, signatureHeaders } from "../../functions/receivers/signature.ts";

/*
 * docs/vectors.json: deliveries as the service sends them, and such as a receiver must refuse, for whoever writes a receiver.
 * What is valid comes from the code that signs. Rows of data, no clock and no randomness: every run writes the same file.
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
  /** What the receiver knows. */
  secrets: string[];
  /** The body as it came, in UTF-8. */
  body: string;
  headers: Record<string, string>;
  /** The receiver's clock, Unix time in seconds. */
  now: number;
  valid: boolean;
  error?: Failure;
  why?: string;
}

const TOLERANCE_SECONDS = 300;
const SENT_AT = 1795233869;
const DELIVERY_ID = "01a1fc46-ece3-7718-84b7-ff6464808948";

const secret = `whsec_${"0123456789abcdef".repeat(4)}`;
const oldSecret = `whsec_${"fedcba9876543210".repeat(4)}`;
const olderSecret = `whsec_${"00112233445566778899aabbccddeeff".repeat(2)}`;
const foreignSecret = `whsec_${"deadbeef".repeat(8)}`;

const event = (data: string) =>
  '{"event":"deploy.succeeded","project_id":"0198c2a4-7b1e-7c55-9f3d-2a6b8c4d0e11","deployment_id":"0198c2a4-9d02-7a10-8c44-51f0b7e6d322",' +
  `"timestamp":"2026-11-21T04:04:29.027Z","data":${data}}`;
const body = event('{"url":"https://my-shop.example.app","status":"running"}');
const unicodeBody = event('{"url":"https://my-shop.example.app","status":"running","message":"Grüße, 世界 🚀"}');
const spacedBody = event('{ "url": "https://my-shop.example.app",\\n  "status": "running" }').replace("\\n", "\n");

const bodies: [name: string, body: string][] = [
  ["an event", body],
  ["an empty object", "{}"],
  ["umlauts, Chinese and an emoji, as UTF-8", unicodeBody],
  ["the same as escapes, which are other bytes", escaped(unicodeBody)],
  ["a newline at the end", `${body}\n`],
  ["spaces and newlines between the tokens", spacedBody],
  [
    "numbers beyond double precision, in several spellings",
    event('{"url":"https://a.example","status":"running","build":9007199254740993,"share":1.0,"size":1E40}'),
  ],
  [
    "an escaped slash and an escaped quote",
    event('{"url":"https:\\/\\/my-shop.example.app","status":"running","message":"it said \\"hello\\""}'),
  ],
  [
    "separators that JavaScript took for newlines",
    event('{"url":"https://a.example","status":"running","message":"\u2028\u2029"}'),
  ],
];

interface Sent {
  body?: string;
  /** Newest first. */
  signedWith?: string[];
  at?: number;
}

/** The headers of a delivery. */
function sent({ body: text = body, signedWith = [secret], at = SENT_AT }: Sent = {}): Record<string, string> {
  const [current = secret, ...previous] = signedWith;
  return signatureHeaders({ deliveryId: DELIVERY_ID, at: new Date(at * 1000), body: text }, current, previous);
}

type Case = { name: string; error?: Failure; why?: string } & Partial<
  Pick<Vector, "secrets" | "body" | "headers" | "now">
>;

/** What holds for either scheme. */
const ofBoth: Case[] = [
  ...bodies.map(([name, text]) => ({ name: `the body is ${name}`, body: text, headers: sent({ body: text }) })),
  {
    name: "the names of the headers are in upper case",
    headers: Object.fromEntries(Object.entries(sent()).map(([name, value]) => [name.toUpperCase(), value])),
  },
  { name: "the receiver knows the new secret and the old", secrets: [secret, oldSecret] },
  {
    name: "rotated: signed with the new secret and the old, and the receiver knows the old",
    secrets: [oldSecret],
    headers: sent({ signedWith: [secret, oldSecret] }),
  },
  {
    name: "rotated: signed with the new secret and the old, and the receiver knows the new",
    headers: sent({ signedWith: [secret, oldSecret] }),
  },
  {
    name: "rotated twice: signed with three secrets, and the receiver knows the oldest",
    secrets: [olderSecret],
    headers: sent({ signedWith: [secret, oldSecret, olderSecret] }),
  },
  {
    name: "rotated without an overlap, and the receiver knows both secrets",
    secrets: [oldSecret, secret],
  },
  {
    name: "the receiver knows the old secret only, and the overlap is over",
    secrets: [oldSecret],
    error: "no_matching_signature",
    why: "the delivery is signed with the new secret alone",
  },
  {
    name: "rotated twice, and the receiver knows another secret",
    secrets: [foreignSecret],
    headers: sent({ signedWith: [secret, oldSecret, olderSecret] }),
    error: "no_matching_signature",
    why: "none of the three secrets is the receiver's",
  },
  ...alterations(),
];

/** A body that is not the one that was signed, though some look the same. */
function alterations(): Case[] {
  const rows: [name: string, signed: string, arrived: string, why: string][] = [
    ["one character of the body was changed", body, body.replace("running", "runninG"), "the body was tampered with"],
    ["the body was cut short", body, body.slice(0, -1), "the body was tampered with"],
    ["the newline at the end was trimmed", `${body}\n`, body, "the newline is signed too"],
    ["a newline was added", body, `${body}\n`, "a file or a shell variable was read with a newline that did not come"],
    ["newlines became CR LF", spacedBody, spacedBody.replaceAll("\n", "\r\n"), "the body was read as text"],
    [
      "the body was parsed and printed again",
      spacedBody,
      JSON.stringify(JSON.parse(spacedBody)),
      "printing loses the spaces",
    ],
    ["the body was printed with other escapes", unicodeBody, escaped(unicodeBody), "the same JSON in other bytes"],
    ["the body was read as Latin-1", unicodeBody, Buffer.from(unicodeBody).toString("latin1"), "the body is UTF-8"],
    ["a byte order mark was put before the body", body, `\ufeff${body}`, "three bytes more"],
    ["the body is gone", body, "", "something read it before the verification"],
  ];
  return rows.map(([name, signed, arrived, why]) => ({
    name,
    body: arrived,
    headers: sent({ body: signed }),
    error: "no_matching_signature",
    why,
  }));
}

const standardSignature = (key: Buffer | string, timestamp = String(SENT_AT)) =>
  `v1,${createHmac("sha256", key).update(`${DELIVERY_ID}.${timestamp}.${body}`).digest("base64")}`;
const afterPrefix = secret.slice("whsec_".length);
const standardKey = Buffer.from(afterPrefix, "base64");
const goodStandard = sent()["webhook-signature"] ?? "";
const withStandard = (signature: string) => ({ ...sent(), "webhook-signature": signature });

const ofStandard: Case[] = [
  {
    name: "the signature is in base64url",
    body: "{}",
    headers: { ...sent({ body: "{}" }), "webhook-signature": base64url(sent({ body: "{}" })["webhook-signature"]) },
    error: "no_matching_signature",
    why: "it is base64 with + and /",
  },
  {
    name: "an unknown version stands before the signature",
    headers: withStandard(`v1a,${"A".repeat(86)}== ${goodStandard}`),
  },
  { name: "sent as long ago as is tolerated", now: SENT_AT + TOLERANCE_SECONDS },
  { name: "sent as far in the future as is tolerated", now: SENT_AT - TOLERANCE_SECONDS },
  {
    name: "a second older than is tolerated",
    now: SENT_AT + TOLERANCE_SECONDS + 1,
    error: "timestamp_too_old",
    why: "a replay",
  },
  { name: "a day old", now: SENT_AT + 86_400, error: "timestamp_too_old", why: "a replay" },
  {
    name: "a second further in the future than is tolerated",
    now: SENT_AT - TOLERANCE_SECONDS - 1,
    error: "timestamp_too_new",
    why: "one of the clocks is wrong",
  },
  {
    name: "replayed with the time of now",
    headers: { ...sent(), "webhook-timestamp": String(SENT_AT + 86_400) },
    now: SENT_AT + 86_400,
    error: "no_matching_signature",
    why: "the time is signed",
  },
  {
    name: "replayed under another id",
    headers: { ...sent(), "webhook-id": "01a1fc46-ece3-7718-84b7-ff6464808949" },
    error: "no_matching_signature",
    why: "the id is signed",
  },
  ...["yesterday", `${SENT_AT}.0`, `+${SENT_AT}`, `${SENT_AT} 0`, `${SENT_AT}000000`].map(
    (timestamp): Case => ({
      name: `the time is ${timestamp}`,
      // Signed as it stands: a receiver that reads a number into it is refused by the signature, if not before.
      headers: { ...withStandard(standardSignature(standardKey, timestamp)), "webhook-timestamp": timestamp },
      error: "invalid_timestamp",
      why: "not a Unix time in whole seconds, of at most 12 digits",
    }),
  ),
  ...["webhook-id", "webhook-timestamp", "webhook-signature"].map(
    (name): Case => ({
      name: `there is no ${name}`,
      headers: without(name),
      error: "missing_header",
      why: "the other headers do not replace it",
    }),
  ),
  {
    name: "the signature is empty",
    headers: withStandard(""),
    error: "missing_header",
    why: "there is nothing to compare",
  },
  ...refused("webhook-signature", [
    [
      "the key is the whole secret, as X-Service-Signature has it",
      standardSignature(secret),
      "wrong key: decode what follows whsec_ from base64",
    ],
    ["the key is the text after whsec_", standardSignature(afterPrefix), "wrong key: decode it from base64"],
    [
      "the key is decoded from hex",
      standardSignature(Buffer.from(afterPrefix, "hex")),
      "wrong key: it looks like hex and is decoded from base64",
    ],
    [
      "only the body was signed",
      `v1,${createHmac("sha256", standardKey).update(body).digest("base64")}`,
      "id and time are signed too",
    ],
    ["the signature is in hex", `v1,${Buffer.from(goodStandard.slice(3), "base64").toString("hex")}`, "it is base64"],
    ["the signature has lost its padding", goodStandard.replace(/=$/, ""), "compared as text"],
    ["the signature was cut short", goodStandard.slice(0, 20), "all of it is compared"],
    ["the signature is a version only", "v1,", "there is nothing to compare"],
    ["the signature has no version", goodStandard.slice(3), "v1, stands before it"],
    ["the signature has another version", goodStandard.replace("v1,", "v2,"), "only v1 is an HMAC"],
    ["the signature is not ASCII", "v1,Grüße", "refused, without an error of another kind"],
  ]),
];

const bodyHmac = (key: Buffer | string) => `sha256=${createHmac("sha256", key).update(body).digest("hex")}`;
const goodBody = bodySignature(body, secret);
const withBody = (signature: string) => ({ ...sent(), "X-Service-Signature": signature });

const ofBody: Case[] = [
  {
    name: "a day old",
    now: SENT_AT + 86_400,
    why: "this scheme signs no time: it cannot tell a replay",
  },
  {
    name: "replayed under another id and time",
    headers: { ...sent(), "webhook-id": "another", "webhook-timestamp": "0" },
    why: "this scheme signs the body alone: recognise a repeated body by its hash",
  },
  { name: "there is no webhook-signature", headers: without("webhook-signature"), why: "it is not of this scheme" },
  {
    name: "there is no X-Service-Signature",
    headers: without("X-Service-Signature"),
    error: "missing_header",
    why: "the other signature does not replace it",
  },
  {
    name: "the signature is empty",
    headers: withBody(""),
    error: "missing_header",
    why: "there is nothing to compare",
  },
  ...refused("X-Service-Signature", [
    ["the key is the text after whsec_", bodyHmac(afterPrefix), "wrong key: whsec_ is part of it"],
    [
      "the key is decoded from base64",
      bodyHmac(Buffer.from(afterPrefix, "base64")),
      "wrong key: the whole secret, as text",
    ],
    ["the key is decoded from hex", bodyHmac(Buffer.from(afterPrefix, "hex")), "wrong key: the whole secret, as text"],
    [
      "the signature is in upper case",
      `sha256=${goodBody.slice(7).toUpperCase()}`,
      "the hex is lower case, and compared as text",
    ],
    ["the signature is in base64", `sha256=${Buffer.from(goodBody.slice(7), "hex").toString("base64")}`, "it is hex"],
    ["the signature has lost its sha256=", goodBody.slice(7), "sha256= stands before it"],
    ["the signature was cut short", goodBody.slice(0, 39), "all of it is compared"],
    ["the signature is sha256= only", "sha256=", "there is nothing to compare"],
    ["the signature is not ASCII", "sha256=Grüße", "refused, without an error of another kind"],
  ]),
  {
    name: "the previous signature matches and the current does not",
    headers: { ...withBody(bodySignature(body, foreignSecret)), "X-Service-Signature-Previous": goodBody },
    why: "either may be by the secret that the receiver knows",
  },
  {
    name: "the previous signatures are by other secrets too",
    headers: sent({ signedWith: [oldSecret, olderSecret, foreignSecret] }),
    error: "no_matching_signature",
    why: "none of the three secrets is the receiver's",
  },
];

function refused(header: string, rows: [name: string, value: string, why: string][]): Case[] {
  return rows.map(([name, value, why]) => ({
    name,
    headers: { ...sent(), [header]: value },
    error: "no_matching_signature",
    why,
  }));
}

/** @throws Error if it is the same: a vector that shows nothing. */
function base64url(signature = ""): string {
  const changed = signature.replaceAll("+", "-").replaceAll("/", "_");
  if (changed === signature) throw new Error("the signature has neither + nor /");
  return changed;
}

function without(name: string): Record<string, string> {
  return Object.fromEntries(Object.entries(sent()).filter(([each]) => each !== name));
}

/** The same JSON in ASCII, as Python prints it. */
function escaped(text: string): string {
  return text.replaceAll(/[\u0080-\uffff]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

function vector(scheme: Vector["scheme"], { name, error, why, ...rest }: Case): Vector {
  const given = { secrets: [secret], body, headers: sent(), now: SENT_AT + 1, ...rest };
  const verdict = { valid: error === undefined, ...(error && { error }), ...(why !== undefined && { why }) };
  return { name: `${scheme}: ${name}`, scheme, ...given, ...verdict };
}

/** The keys that a secret makes, in hex, for whoever wants to see where his own differs. */
function keysOf(text: string) {
  const standard = Buffer.from(text.slice("whsec_".length), "base64").toString("hex");
  return { secret: text, body_key_hex: Buffer.from(text).toString("hex"), standard_key_hex: standard };
}

/** The text of docs/vectors.json. */
export function vectorsText(): string {
  const vectors = [
    ...[...ofBoth, ...ofStandard].map((each) => vector("standard", each)),
    ...[...ofBoth, ...ofBody].map((each) => vector("body", each)),
  ];
  const keys = [secret, oldSecret, olderSecret, foreignSecret].map(keysOf);
  const file = { about: "docs/receivers/README.md", tolerance_seconds: TOLERANCE_SECONDS, keys, vectors };
  const text = JSON.stringify(file, null, 2).replaceAll("\u2028", "\\u2028").replaceAll("\u2029", "\\u2029");
  // As the formatter has it: what fits into a line stands in one.
  return `${text.replaceAll(/\[\n\s+("[^"\n]*")\n\s+\]/g, "[$1]")}\n`;
}

export function main(): void {
  writeFileSync(join(import.meta.dirname, "../../docs/vectors.json"), vectorsText());
}
