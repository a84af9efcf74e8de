import { isExactNumber, parseExactly, stringifyExactly } from "../exact-json.ts";
import {
  type Bytes,
  concat,
  fromBase64,
  fromHex,
  fromLatin1,
  fromText,
  toBase64,
  toHex,
  toLatin1,
  toText,
} from "./bytes.ts";
import { hmac, sha256 } from "./hashes.ts";
import { prepend, type Scheme, type SignatureInput, serviceSignature, standardWebhooks } from "./signature-schemes.ts";

/*
 * The usual mistakes in verifying a signature, one row each. A row repeats or undoes its mistake. `diagnose` applies single
 * rows and pairs of rows: those that produce the given signature explain it.
 */

export interface Finding {
  /** Identifies the kind of mistake. Part of `--json`, and so never changed. */
  code: string;
  message: string;
  fix: string;
}

export type MistakeRow<Change> = Finding & { change: Change };

/** Changes the given body to one that may have been signed; undefined if the row does not apply. */
export type BodyChange = (body: Bytes) => Bytes | string | undefined;
export type SecretChange = (secret: string) => string | undefined;
export type KeyChange = (secret: string) => Bytes | Promise<Bytes>;
export type ContentChange = (input: SignatureInput) => Bytes | undefined;
export type MacChange = (key: Bytes, content: Bytes) => Promise<Bytes>;
export type EncodingChange = (mac: Bytes) => string;

const verifyRawBytes = "Verify the exact bytes that were received, before any code parses or converts them.";
const saveRawBytes = "Save the exact bytes of the body, without an editor, echo or copy and paste.";

/** Parses and serializes a JSON body. Numbers keep their digits. Undefined for a body that is not JSON. */
const reserialize =
  (serialize: (value: unknown) => string): BodyChange =>
  (body) => {
    try {
      return serialize(parseExactly(toText(body).replace(/^\ufeff/, "")));
    } catch {
      return undefined;
    }
  };

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value) && !isExactNumber(value);

function sortKeys(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sortKeys);
  if (!isObject(value)) return value;
  return Object.fromEntries(
    Object.entries(value)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([name, part]) => [name, sortKeys(part)]),
  );
}

/**
 * Orders the fields of an event as the service sends them.
 * @param firstInData the fields of `data` to put first
 */
function inSendingOrder(value: unknown, firstInData: string[] = []): unknown {
  if (!isObject(value)) return value;
  const { event, project_id, deployment_id, timestamp, data, ...rest } = value;
  const ordered = isObject(data)
    ? { ...Object.fromEntries(firstInData.filter((name) => name in data).map((name) => [name, data[name]])), ...data }
    : data;
  return { event, project_id, deployment_id, timestamp, data: ordered, ...rest };
}

/** Serializes with the separators ", " and ": ", as Python does. */
function withSpaces(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(withSpaces).join(", ")}]`;
  if (!isObject(value)) return stringifyExactly(value);
  return `{${Object.entries(value)
    .map(([name, part]) => `${JSON.stringify(name)}: ${withSpaces(part)}`)
    .join(", ")}}`;
}

const compact = (value: unknown): string => stringifyExactly(value);
const escapeUnicode = (json: string): string =>
  json.replaceAll(/[\u0080-\uffff]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`);

const reserialized = (format: string): Finding => ({
  code: "body_reserialised",
  message: `The body was parsed and serialized again: the signature matches the same JSON ${format}.`,
  fix: verifyRawBytes,
});
const whitespace = (code: string, message: string): Finding => ({ code, message, fix: saveRawBytes });

export const bodies: MistakeRow<BodyChange>[] = [
  {
    ...whitespace("newline_added", "The body ends with a line break that was not signed."),
    change: (body) => (/\r?\n$/.test(toText(body)) ? toText(body).replace(/\r?\n$/, "") : undefined),
  },
  {
    ...whitespace("newline_trimmed", "The line break at the end of the signed body is missing."),
    change: (body) => concat(body, fromText("\n")),
  },
  {
    ...whitespace("newline_trimmed", "The line break (CR LF) at the end of the signed body is missing."),
    change: (body) => concat(body, fromText("\r\n")),
  },
  {
    ...whitespace("crlf_added", "The line breaks are CR LF, but those of the signed body are LF."),
    change: (body) => (toText(body).includes("\r\n") ? toText(body).replaceAll("\r\n", "\n") : undefined),
  },
  {
    ...whitespace("crlf_lost", "The line breaks are LF, but those of the signed body are CR LF."),
    change: (body) => (/[^\r]\n/.test(toText(body)) ? toText(body).replaceAll(/\r?\n/g, "\r\n") : undefined),
  },
  {
    ...whitespace("bom_added", "The body starts with a byte order mark that was not signed."),
    change: (body) => (toText(body).startsWith("\ufeff") ? body.slice(3) : undefined),
  },
  {
    ...whitespace("bom_lost", "The byte order mark at the start of the signed body is missing."),
    change: (body) => prepend("\ufeff", body),
  },
  {
    ...whitespace("whitespace_added", "The body is surrounded by white space that was not signed."),
    change: (body) => toText(body).trim(),
  },
  { ...reserialized("without white space"), change: reserialize(compact) },
  { ...reserialized("with the separators ', ' and ': '"), change: reserialize(withSpaces) },
  {
    ...reserialized("with the separators ', ' and ': ', and with non-ASCII characters escaped"),
    change: reserialize((value) => escapeUnicode(withSpaces(value))),
  },
  { ...reserialized("indented with two spaces"), change: reserialize((value) => stringifyExactly(value, 2)) },
  { ...reserialized("indented with four spaces"), change: reserialize((value) => stringifyExactly(value, 4)) },
  { ...reserialized("indented with tabs"), change: reserialize((value) => stringifyExactly(value, "\t")) },
  {
    ...reserialized("with non-ASCII characters escaped"),
    change: reserialize((value) => escapeUnicode(compact(value))),
  },
  { ...reserialized("with slashes escaped"), change: reserialize((value) => compact(value).replaceAll("/", "\\/")) },
  {
    ...reserialized("with slashes and non-ASCII characters escaped"),
    change: reserialize((value) => escapeUnicode(compact(value)).replaceAll("/", "\\/")),
  },
  {
    ...reserialized("with <, > and & escaped"),
    change: reserialize((value) =>
      compact(value).replaceAll(/[<>&]/g, (mark) => `\\u00${mark.charCodeAt(0).toString(16)}`),
    ),
  },
  { ...reserialized("with sorted keys"), change: reserialize((value) => compact(sortKeys(value))) },
  {
    ...reserialized("with the fields in the order in which they were sent"),
    change: reserialize((value) => compact(inSendingOrder(value))),
  },
  {
    ...reserialized("with the fields in the order in which they were sent"),
    change: reserialize((value) => compact(inSendingOrder(value, ["url", "status"]))),
  },
  {
    ...reserialized("with numbers rounded to double precision"),
    change: (body) => {
      try {
        return JSON.stringify(JSON.parse(toText(body)));
      } catch {
        return undefined;
      }
    },
  },
  {
    code: "body_stringified_twice",
    message: "The signature matches the body encoded as a JSON string, in quotes.",
    fix: verifyRawBytes,
    change: (body) => JSON.stringify(toText(body)),
  },
  {
    code: "body_stringified_twice",
    message: "The body is a JSON string that contains the signed body: it was encoded twice.",
    fix: verifyRawBytes,
    change: (body) => {
      try {
        const inner: unknown = JSON.parse(toText(body));
        return typeof inner === "string" ? inner : undefined;
      } catch {
        return undefined;
      }
    },
  },
  {
    code: "body_base64",
    message: "The body is base64: the signature matches the decoded body.",
    fix: "Decode it first. API Gateway and Lambda report this in isBase64Encoded.",
    change: (body) => (/^[\w+/]+=*\s*$/.test(toText(body)) ? fromBase64(toText(body)) : undefined),
  },
  {
    code: "body_base64",
    message: "The signature matches the base64 of the body.",
    fix: "Sign the body itself.",
    change: (body) => toBase64(body),
  },
  {
    code: "body_wrong_charset",
    message: "The body was decoded with the wrong character set (Latin-1 or UTF-8).",
    fix: verifyRawBytes,
    change: (body) => fromLatin1(toText(body)),
  },
  {
    code: "body_wrong_charset",
    message: "The signature matches the body decoded as Latin-1 and encoded as UTF-8.",
    fix: verifyRawBytes,
    change: (body) => toLatin1(body),
  },
  {
    code: "body_normalised",
    message: "The body was normalized (Unicode NFC or NFD).",
    fix: verifyRawBytes,
    change: (body) => toText(body).normalize("NFC"),
  },
  {
    code: "body_normalised",
    message: "The body was normalized (Unicode NFC or NFD).",
    fix: verifyRawBytes,
    change: (body) => toText(body).normalize("NFD"),
  },
  {
    code: "body_not_read",
    message: "The signature matches an empty body: the body was already read, or not read yet.",
    fix: "Read the raw body once, before a body parser reads it.",
    change: () => "",
  },
  {
    code: "body_not_read",
    message: "The signature matches {}: the initial value of a body parser that did not run.",
    fix: "Read the raw body once, before a body parser reads it.",
    change: () => "{}",
  },
  {
    code: "body_not_text",
    message: 'The signature matches "[object Object]": a parsed body was converted to text.',
    fix: verifyRawBytes,
    change: () => "[object Object]",
  },
];

export const secrets: MistakeRow<SecretChange>[] = [
  {
    code: "secret_whitespace",
    message: "The secret is surrounded by white space or a line break.",
    fix: "Trim it when you read it: files and pasted values often end with a line break.",
    change: (secret) => secret.trim(),
  },
  {
    code: "secret_quoted",
    message: "The secret is enclosed in quotes.",
    fix: "Remove the quotes: env files and containers keep them.",
    change: (secret) => /^\s*(["'])(.*)\1\s*$/.exec(secret)?.[2],
  },
  {
    code: "secret_without_prefix",
    message: "The secret lacks whsec_, which is part of it.",
    fix: "Use the whole secret as it was shown.",
    change: (secret) => (secret.startsWith("whsec_") ? undefined : `whsec_${secret}`),
  },
  {
    code: "secret_case",
    message: "The case of the secret was changed.",
    fix: "Use the secret as it was shown, in lower case.",
    change: (secret) => secret.toLowerCase(),
  },
];

const part = (secret: string): string => secret.replace(/^whsec_/, "");

const wrongKey = (message: string, fix: string): Finding => ({ code: "wrong_key", message, fix });

const serviceKey = "The key of X-Service-Signature is the whole secret as text, including whsec_.";
const standardKey = "The key of webhook-signature is the part after whsec_, decoded as base64.";

export const keysOf = new Map<Scheme, MistakeRow<KeyChange>[]>([
  [
    serviceSignature,
    [
      {
        ...wrongKey("The key is the secret without whsec_.", serviceKey),
        change: (secret) => fromText(part(secret)),
      },
      {
        ...wrongKey("The key is the part after whsec_ decoded as base64.", serviceKey),
        change: (secret) => fromBase64(part(secret)),
      },
      {
        ...wrongKey("The key is the part after whsec_ decoded as hex.", serviceKey),
        change: (secret) => fromHex(part(secret)),
      },
      {
        ...wrongKey("The key is the whole secret decoded as base64.", serviceKey),
        change: (secret) => fromBase64(secret),
      },
      {
        ...wrongKey("The key is the base64 of the secret.", serviceKey),
        change: (secret) => fromText(toBase64(fromText(secret))),
      },
      {
        ...wrongKey("The key is the SHA-256 of the secret.", serviceKey),
        change: (secret) => sha256(fromText(secret)),
      },
    ],
  ],
  [
    standardWebhooks,
    [
      {
        ...wrongKey("The key is the whole secret as text.", standardKey),
        change: (secret) => fromText(secret),
      },
      {
        ...wrongKey("The key is the part after whsec_ as text, not decoded.", standardKey),
        change: (secret) => fromText(part(secret)),
      },
      {
        ...wrongKey("The key is the part after whsec_ decoded as hex.", standardKey),
        change: (secret) => fromHex(part(secret)),
      },
      {
        ...wrongKey("The key is the whole secret, including whsec_, decoded as base64.", standardKey),
        change: (secret) => fromBase64(secret),
      },
    ],
  ],
]);

const wrongContent = (message: string, fix: string): Finding => ({ code: "wrong_content", message, fix });
const bodyAlone = "X-Service-Signature covers only the body.";
const idTimeBody = "webhook-signature covers <webhook-id>.<webhook-timestamp>.<body>, including the periods.";

/** What was signed instead of the documented content. */
export const contentsOf = new Map<Scheme, MistakeRow<ContentChange>[]>([
  [
    serviceSignature,
    [
      {
        ...wrongContent("The signed content is <webhook-id>.<webhook-timestamp>.<body>.", bodyAlone),
        change: standardWebhooks.content,
      },
      {
        ...wrongContent("The signed content is <timestamp>.<body>.", bodyAlone),
        change: ({ timestamp, body }) => prepend(`${timestamp}.`, body),
      },
    ],
  ],
  [
    standardWebhooks,
    [
      { ...wrongContent("The signed content is only the body.", idTimeBody), change: ({ body }) => body },
      {
        ...wrongContent("The signed content is <timestamp>.<body>, without the id.", idTimeBody),
        change: ({ timestamp, body }) => prepend(`${timestamp}.`, body),
      },
      {
        ...wrongContent("The signed content is <id>.<body>, without the timestamp.", idTimeBody),
        change: ({ id, body }) => prepend(`${id}.`, body),
      },
      {
        ...wrongContent("The signed content is <timestamp>.<id>.<body>: id and timestamp are swapped.", idTimeBody),
        change: ({ id, timestamp, body }) => prepend(`${timestamp}.${id}.`, body),
      },
      {
        ...wrongContent("The signed content has no periods between its parts.", idTimeBody),
        change: ({ id, timestamp, body }) => prepend(`${id}${timestamp}`, body),
      },
      {
        ...wrongContent("The timestamp is in milliseconds, but the signed timestamp is in seconds.", idTimeBody),
        change: ({ id, timestamp, body }) =>
          /^\d{13}$/.test(timestamp) ? prepend(`${id}.${timestamp.slice(0, 10)}.`, body) : undefined,
      },
      {
        ...wrongContent("The signed timestamp is in milliseconds.", idTimeBody),
        change: ({ id, timestamp, body }) => prepend(`${id}.${timestamp}000.`, body),
      },
    ],
  ],
]);

export const macs: MistakeRow<MacChange>[] = [
  {
    code: "wrong_algorithm",
    message: "The signature uses SHA-1.",
    fix: "Use HMAC-SHA-256.",
    change: (key, content) => hmac(key, content, "SHA-1"),
  },
  {
    code: "wrong_algorithm",
    message: "The signature uses SHA-512.",
    fix: "Use HMAC-SHA-256.",
    change: (key, content) => hmac(key, content, "SHA-512"),
  },
  {
    code: "no_hmac",
    message: "The signature is a plain SHA-256 of the body, without the secret.",
    fix: "Use HMAC-SHA-256 with the secret as the key.",
    change: (_key, content) => sha256(content),
  },
  {
    code: "no_hmac",
    message: "The signature is a plain SHA-256 of the secret followed by the body.",
    fix: "Use HMAC-SHA-256 with the secret as the key.",
    change: (key, content) => sha256(key, content),
  },
  {
    code: "arguments_swapped",
    message: "The arguments are swapped: the body was used as the key.",
    fix: "Use the secret as the key and the body as the content.",
    change: (key, content) => hmac(content, key),
  },
];

const wrongEncoding = (message: string, fix: string): Finding => ({ code: "wrong_encoding", message, fix });
const lowerHex = "X-Service-Signature is sha256= followed by 64 lower-case hex digits.";
const v1Base64 = 'Each signature in webhook-signature is "v1," followed by base64 with padding.';

export const encodingsOf = new Map<Scheme, MistakeRow<EncodingChange>[]>([
  [
    serviceSignature,
    [
      {
        ...wrongEncoding("The hex digits are in upper case.", lowerHex),
        code: "upper_case_hex",
        change: (mac) => `sha256=${toHex(mac).toUpperCase()}`,
      },
      {
        ...wrongEncoding("The prefix sha256= is missing.", lowerHex),
        code: "prefix_missing",
        change: (mac) => toHex(mac),
      },
      {
        ...wrongEncoding("The prefix is not sha256=.", lowerHex),
        code: "prefix_missing",
        change: (mac) => `v1,${toHex(mac)}`,
      },
      {
        ...wrongEncoding("The signature is base64 instead of hex.", lowerHex),
        change: (mac) => `sha256=${toBase64(mac)}`,
      },
      {
        ...wrongEncoding("The signature is base64 instead of hex, and lacks sha256=.", lowerHex),
        change: (mac) => toBase64(mac),
      },
      {
        ...wrongEncoding("The signature is the base64 of the hex digits.", lowerHex),
        change: (mac) => `sha256=${toBase64(fromText(toHex(mac)))}`,
      },
    ],
  ],
  [
    standardWebhooks,
    [
      {
        ...wrongEncoding('The version prefix "v1," is missing.', v1Base64),
        code: "prefix_missing",
        change: (mac) => toBase64(mac),
      },
      {
        ...wrongEncoding('The version prefix is "v1=" instead of "v1,".', v1Base64),
        code: "prefix_missing",
        change: (mac) => `v1=${toBase64(mac)}`,
      },
      {
        ...wrongEncoding("The signature is hex instead of base64.", v1Base64),
        change: (mac) => `v1,${toHex(mac)}`,
      },
      {
        ...wrongEncoding('The signature is hex instead of base64, and lacks the version prefix "v1,".', v1Base64),
        change: (mac) => toHex(mac),
      },
      {
        ...wrongEncoding("The signature is base64url, with - and _.", v1Base64),
        change: (mac) => `v1,${toBase64(mac).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "")}`,
      },
      {
        ...wrongEncoding("The padding (=) at the end of the base64 is missing.", v1Base64),
        change: (mac) => `v1,${toBase64(mac).replace(/=+$/, "")}`,
      },
      {
        ...wrongEncoding("The signature is the base64 of the hex digits.", v1Base64),
        change: (mac) => `v1,${toBase64(fromText(toHex(mac)))}`,
      },
    ],
  ],
]);
