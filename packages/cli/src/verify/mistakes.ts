import { createHash, createHmac } from "node:crypto";
import { parseExactly } from "../exact-json.ts";
import { hmac, joined, type Scheme, type Signable, serviceSignature, standardWebhooks } from "./signature-schemes.ts";

/*
 * The usual mistakes, as rows: each undoes or repeats one. A signature that does not hold is looked for among what they
 * produce, alone and in pairs; the row that produces it names the mistake.
 */

export interface Mistake {
  code: string;
  /** What is wrong, as a sentence. */
  says: string;
  /** What to do about it, as a sentence. */
  fix: string;
}

export type Row<Change> = Mistake & { change: Change };

/** Turns the body that was given into one that may have been signed; undefined where the row does not apply. */
export type BodyChange = (body: Buffer) => Buffer | string | undefined;
type SecretChange = (secret: string) => string | undefined;
type KeyChange = (secret: string) => Buffer | undefined;
export type ContentChange = (signable: Signable) => Buffer | undefined;
/** Another way to make the MAC, from key and content. */
export type MacChange = (key: Buffer, content: Buffer) => Buffer;
type WriteChange = (mac: Buffer) => string;

const asItCame = "Verify the bytes as they came, before anything parses or converts them.";
const inFile = "Save the body byte for byte: no editor, no echo, no paste.";

const text = (body: Buffer): string => body.toString("utf8");

/** Applies to bodies that are JSON only. Numbers stay as they are written. */
const reprinted =
  (print: (value: unknown) => string): BodyChange =>
  (body) => {
    try {
      return print(parseExactly(text(body).replace(/^\ufeff/, "")));
    } catch {
      return undefined;
    }
  };

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value) && !JSON.isRawJSON(value);

function sortKeys(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sortKeys);
  if (!isObject(value)) return value;
  return Object.fromEntries(
    Object.entries(value)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([name, part]) => [name, sortKeys(part)]),
  );
}

/** The fields of an event in the order in which they are sent; those of `data` with `first` in front. */
function inSendingOrder(value: unknown, first: string[] = []): unknown {
  if (!isObject(value)) return value;
  const { event, project_id, deployment_id, timestamp, data, ...rest } = value;
  const ordered = isObject(data)
    ? { ...Object.fromEntries(first.filter((name) => name in data).map((name) => [name, data[name]])), ...data }
    : data;
  return { event, project_id, deployment_id, timestamp, data: ordered, ...rest };
}

/** JSON with ", " and ": ", as Python prints it. */
function spaced(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(spaced).join(", ")}]`;
  if (!isObject(value)) return JSON.stringify(value);
  return `{${Object.entries(value)
    .map(([name, part]) => `${JSON.stringify(name)}: ${spaced(part)}`)
    .join(", ")}}`;
}

const compact = (value: unknown): string => JSON.stringify(value);
const escapeUnicode = (json: string): string =>
  json.replaceAll(/[\u0080-\uffff]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`);

const reserialised = (how: string): Mistake => ({
  code: "body_reserialised",
  says: `The body was parsed and printed again: the signature is that of the same JSON ${how}.`,
  fix: asItCame,
});
const whitespace = (code: string, says: string): Mistake => ({ code, says, fix: inFile });

export const bodies: Row<BodyChange>[] = [
  {
    ...whitespace("newline_added", "The body ends in a line break that was not signed."),
    change: (body) => (/\r?\n$/.test(text(body)) ? text(body).replace(/\r?\n$/, "") : undefined),
  },
  {
    ...whitespace("newline_trimmed", "The line break at the end of the signed body is missing."),
    change: (body) => Buffer.concat([body, Buffer.from("\n")]),
  },
  {
    ...whitespace("newline_trimmed", "The line break (CR LF) at the end of the signed body is missing."),
    change: (body) => Buffer.concat([body, Buffer.from("\r\n")]),
  },
  {
    ...whitespace("crlf_added", "Line breaks became CR LF: the signed body has LF."),
    change: (body) => (text(body).includes("\r\n") ? text(body).replaceAll("\r\n", "\n") : undefined),
  },
  {
    ...whitespace("crlf_lost", "Line breaks became LF: the signed body has CR LF."),
    change: (body) => (/[^\r]\n/.test(text(body)) ? text(body).replaceAll(/\r?\n/g, "\r\n") : undefined),
  },
  {
    ...whitespace("bom_added", "The body starts with a byte order mark that was not signed."),
    change: (body) => (body.subarray(0, 3).equals(Buffer.from("\ufeff")) ? body.subarray(3) : undefined),
  },
  {
    ...whitespace("bom_lost", "The byte order mark at the start of the signed body is missing."),
    change: (body) => joined("\ufeff", body),
  },
  {
    ...whitespace("whitespace_added", "The body has white space around it that was not signed."),
    change: (body) => text(body).trim(),
  },
  { ...reserialised("without white space"), change: reprinted(compact) },
  { ...reserialised("with ', ' and ': ' between"), change: reprinted(spaced) },
  {
    ...reserialised("with ', ' and ': ' between and characters beyond ASCII escaped"),
    change: reprinted((value) => escapeUnicode(spaced(value))),
  },
  { ...reserialised("indented by two spaces"), change: reprinted((value) => JSON.stringify(value, null, 2)) },
  { ...reserialised("indented by four spaces"), change: reprinted((value) => JSON.stringify(value, null, 4)) },
  { ...reserialised("indented by tabs"), change: reprinted((value) => JSON.stringify(value, null, "\t")) },
  {
    ...reserialised("with characters beyond ASCII escaped"),
    change: reprinted((value) => escapeUnicode(compact(value))),
  },
  { ...reserialised("with slashes escaped"), change: reprinted((value) => compact(value).replaceAll("/", "\\/")) },
  {
    ...reserialised("with slashes and characters beyond ASCII escaped"),
    change: reprinted((value) => escapeUnicode(compact(value)).replaceAll("/", "\\/")),
  },
  {
    ...reserialised("with <, > and & escaped"),
    change: reprinted((value) =>
      compact(value).replaceAll(/[<>&]/g, (mark) => `\\u00${mark.charCodeAt(0).toString(16)}`),
    ),
  },
  { ...reserialised("with its keys sorted"), change: reprinted((value) => compact(sortKeys(value))) },
  {
    ...reserialised("with its fields in the order in which they are sent"),
    change: reprinted((value) => compact(inSendingOrder(value))),
  },
  {
    ...reserialised("with its fields in the order in which they are sent"),
    change: reprinted((value) => compact(inSendingOrder(value, ["url", "status"]))),
  },
  {
    ...reserialised("with numbers in double precision"),
    change: (body) => {
      try {
        return JSON.stringify(JSON.parse(text(body)));
      } catch {
        return undefined;
      }
    },
  },
  {
    code: "body_stringified_twice",
    says: "The body was made a JSON string once more: the signature is that of the text in quotes.",
    fix: asItCame,
    change: (body) => JSON.stringify(text(body)),
  },
  {
    code: "body_stringified_twice",
    says: "The body is a JSON string that holds the body: somebody printed text as JSON.",
    fix: asItCame,
    change: (body) => {
      try {
        const inner: unknown = JSON.parse(text(body));
        return typeof inner === "string" ? inner : undefined;
      } catch {
        return undefined;
      }
    },
  },
  {
    code: "body_base64",
    says: "The body is in base64: the signature is that of what it decodes to.",
    fix: "Decode it first (API Gateway and Lambda say so in isBase64Encoded).",
    change: (body) => (/^[\w+/]+=*\s*$/.test(text(body)) ? Buffer.from(text(body), "base64") : undefined),
  },
  {
    code: "body_base64",
    says: "The signature is that of the body in base64.",
    fix: "Sign the body itself.",
    change: (body) => body.toString("base64"),
  },
  {
    code: "body_wrong_charset",
    says: "The body was read as Latin-1 and written as UTF-8, or the other way round.",
    fix: asItCame,
    change: (body) => Buffer.from(text(body), "latin1"),
  },
  {
    code: "body_wrong_charset",
    says: "The signature is that of the body read as Latin-1 and written as UTF-8.",
    fix: asItCame,
    change: (body) => body.toString("latin1"),
  },
  {
    code: "body_normalised",
    says: "The body was normalised (Unicode NFC or NFD).",
    fix: asItCame,
    change: (body) => text(body).normalize("NFC"),
  },
  {
    code: "body_normalised",
    says: "The body was normalised (Unicode NFC or NFD).",
    fix: asItCame,
    change: (body) => text(body).normalize("NFD"),
  },
  {
    code: "body_not_read",
    says: "The signature is that of no body at all: it was read already, or not yet.",
    fix: "Read the raw body once, before a body parser does.",
    change: () => "",
  },
  {
    code: "body_not_read",
    says: "The signature is that of {}: what a body parser leaves that did not run.",
    fix: "Read the raw body once, before a body parser does.",
    change: () => "{}",
  },
  {
    code: "body_not_text",
    says: 'The signature is that of "[object Object]": a parsed body was used as text.',
    fix: asItCame,
    change: () => "[object Object]",
  },
];

export const secrets: Row<SecretChange>[] = [
  {
    code: "secret_whitespace",
    says: "The secret has white space or a line break around it.",
    fix: "Trim it where you read it: files and pasted variables end in a line break.",
    change: (secret) => secret.trim(),
  },
  {
    code: "secret_quoted",
    says: "The secret has quotes around it.",
    fix: "Take the quotes off: env files and containers keep them.",
    change: (secret) => /^\s*(["'])(.*)\1\s*$/.exec(secret)?.[2],
  },
  {
    code: "secret_without_prefix",
    says: "The secret lacks its prefix whsec_, which belongs to it.",
    fix: "Keep the whole secret as it was shown.",
    change: (secret) => (secret.startsWith("whsec_") ? undefined : `whsec_${secret}`),
  },
  {
    code: "secret_case",
    says: "The secret was put into another case.",
    fix: "Keep the secret as it was shown: lower case.",
    change: (secret) => secret.toLowerCase(),
  },
];

const part = (secret: string): string => secret.replace(/^whsec_/, "");

const wrongKey = (says: string, fix: string): Mistake => ({ code: "wrong_key", says, fix });

const serviceKey = "X-Service-Signature is keyed with the whole secret as text, whsec_ included.";
const standardKey = "webhook-signature is keyed with what the part after whsec_ decodes to in base64.";

export const keysOf = new Map<Scheme, Row<KeyChange>[]>([
  [
    serviceSignature,
    [
      {
        ...wrongKey("The key is the secret without whsec_.", serviceKey),
        change: (secret) => Buffer.from(part(secret)),
      },
      {
        ...wrongKey("The key is the part after whsec_ decoded as base64.", serviceKey),
        change: (secret) => Buffer.from(part(secret), "base64"),
      },
      {
        ...wrongKey("The key is the part after whsec_ decoded as hex.", serviceKey),
        change: (secret) => Buffer.from(part(secret), "hex"),
      },
      {
        ...wrongKey("The key is the whole secret decoded as base64.", serviceKey),
        change: (secret) => Buffer.from(secret, "base64"),
      },
      {
        ...wrongKey("The key is the secret in base64.", serviceKey),
        change: (secret) => Buffer.from(Buffer.from(secret).toString("base64")),
      },
      {
        ...wrongKey("The key is the SHA-256 of the secret.", serviceKey),
        change: (secret) => createHash("sha256").update(secret).digest(),
      },
    ],
  ],
  [
    standardWebhooks,
    [
      {
        ...wrongKey("The key is the whole secret as text.", standardKey),
        change: (secret) => Buffer.from(secret),
      },
      {
        ...wrongKey("The key is the part after whsec_ as text, not decoded.", standardKey),
        change: (secret) => Buffer.from(part(secret)),
      },
      {
        ...wrongKey("The key is the part after whsec_ decoded as hex.", standardKey),
        change: (secret) => Buffer.from(part(secret), "hex"),
      },
      {
        ...wrongKey("The key is the whole secret, whsec_ included, decoded as base64.", standardKey),
        change: (secret) => Buffer.from(secret, "base64"),
      },
    ],
  ],
]);

const wrongContent = (says: string, fix: string): Mistake => ({ code: "wrong_content", says, fix });
const bodyAlone = "X-Service-Signature covers the body alone.";
const idTimeBody = "webhook-signature covers <webhook-id>.<webhook-timestamp>.<body>, with the full stops.";

/** Rows say what was signed in place of what should be. */
export const contentsOf = new Map<Scheme, Row<ContentChange>[]>([
  [
    serviceSignature,
    [
      {
        ...wrongContent("What was signed is <webhook-id>.<webhook-timestamp>.<body>.", bodyAlone),
        change: standardWebhooks.content,
      },
      {
        ...wrongContent("What was signed is <timestamp>.<body>.", bodyAlone),
        change: ({ timestamp, body }) => joined(`${timestamp}.`, body),
      },
    ],
  ],
  [
    standardWebhooks,
    [
      { ...wrongContent("What was signed is the body alone.", idTimeBody), change: ({ body }) => body },
      {
        ...wrongContent("What was signed is <timestamp>.<body>, without the id.", idTimeBody),
        change: ({ timestamp, body }) => joined(`${timestamp}.`, body),
      },
      {
        ...wrongContent("What was signed is <id>.<body>, without the timestamp.", idTimeBody),
        change: ({ id, body }) => joined(`${id}.`, body),
      },
      {
        ...wrongContent("What was signed is <timestamp>.<id>.<body>: the wrong way round.", idTimeBody),
        change: ({ id, timestamp, body }) => joined(`${timestamp}.${id}.`, body),
      },
      {
        ...wrongContent("What was signed has no full stops between its parts.", idTimeBody),
        change: ({ id, timestamp, body }) => joined(`${id}${timestamp}`, body),
      },
      {
        ...wrongContent("The timestamp is in milliseconds; the one that was signed is in seconds.", idTimeBody),
        change: ({ id, timestamp, body }) =>
          /^\d{13}$/.test(timestamp) ? joined(`${id}.${timestamp.slice(0, 10)}.`, body) : undefined,
      },
      {
        ...wrongContent("The timestamp that was signed is in milliseconds.", idTimeBody),
        change: ({ id, timestamp, body }) => joined(`${id}.${timestamp}000.`, body),
      },
    ],
  ],
]);

export const macs: Row<MacChange>[] = [
  {
    code: "wrong_algorithm",
    says: "The signature is made with SHA-1.",
    fix: "Use HMAC with SHA-256.",
    change: (key, content) => createHmac("sha1", key).update(content).digest(),
  },
  {
    code: "wrong_algorithm",
    says: "The signature is made with SHA-512.",
    fix: "Use HMAC with SHA-256.",
    change: (key, content) => createHmac("sha512", key).update(content).digest(),
  },
  {
    code: "no_hmac",
    says: "The signature is a plain SHA-256 of the body, without the secret.",
    fix: "Use HMAC with SHA-256, keyed with the secret.",
    change: (_key, content) => createHash("sha256").update(content).digest(),
  },
  {
    code: "no_hmac",
    says: "The signature is a plain SHA-256 of secret and body one after the other.",
    fix: "Use HMAC with SHA-256, keyed with the secret.",
    change: (key, content) => createHash("sha256").update(key).update(content).digest(),
  },
  {
    code: "arguments_swapped",
    says: "Secret and body have changed places: the body is the key.",
    fix: "The secret is the key, and the body is what is signed.",
    change: (key, content) => hmac(content, key),
  },
];

const wrongEncoding = (says: string, fix: string): Mistake => ({ code: "wrong_encoding", says, fix });
const lowerHex = "X-Service-Signature is sha256= and 64 lower-case hex digits.";
const v1Base64 = "Each part of webhook-signature is v1, and base64 with its padding.";

export const writesOf = new Map<Scheme, Row<WriteChange>[]>([
  [
    serviceSignature,
    [
      {
        ...wrongEncoding("The hex digits are in upper case.", lowerHex),
        code: "upper_case_hex",
        change: (mac) => `sha256=${mac.toString("hex").toUpperCase()}`,
      },
      {
        ...wrongEncoding("The prefix sha256= is missing.", lowerHex),
        code: "prefix_missing",
        change: (mac) => mac.toString("hex"),
      },
      {
        ...wrongEncoding("The prefix is not sha256=.", lowerHex),
        code: "prefix_missing",
        change: (mac) => `v1,${mac.toString("hex")}`,
      },
      {
        ...wrongEncoding("The signature is in base64, not in hex.", lowerHex),
        change: (mac) => `sha256=${mac.toString("base64")}`,
      },
      {
        ...wrongEncoding("The signature is in base64, not in hex, and lacks sha256=.", lowerHex),
        change: (mac) => mac.toString("base64"),
      },
      {
        ...wrongEncoding("The signature is in base64 of the hex digits.", lowerHex),
        change: (mac) => `sha256=${Buffer.from(mac.toString("hex")).toString("base64")}`,
      },
    ],
  ],
  [
    standardWebhooks,
    [
      {
        ...wrongEncoding("The version v1, is missing.", v1Base64),
        code: "prefix_missing",
        change: (mac) => mac.toString("base64"),
      },
      {
        ...wrongEncoding("The version is written v1=, not v1,.", v1Base64),
        code: "prefix_missing",
        change: (mac) => `v1=${mac.toString("base64")}`,
      },
      {
        ...wrongEncoding("The signature is in hex, not in base64.", v1Base64),
        change: (mac) => `v1,${mac.toString("hex")}`,
      },
      {
        ...wrongEncoding("The signature is in hex, not in base64, and lacks v1,.", v1Base64),
        change: (mac) => mac.toString("hex"),
      },
      {
        ...wrongEncoding("The signature is in base64 for URLs, with - and _.", v1Base64),
        change: (mac) => `v1,${mac.toString("base64url")}`,
      },
      {
        ...wrongEncoding("The padding (=) at the end of the base64 is missing.", v1Base64),
        change: (mac) => `v1,${mac.toString("base64").replace(/=+$/, "")}`,
      },
      {
        ...wrongEncoding("The signature is in base64 of the hex digits.", v1Base64),
        change: (mac) => `v1,${Buffer.from(mac.toString("hex")).toString("base64")}`,
      },
    ],
  ],
]);
