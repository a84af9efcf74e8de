import { isExactNumber, parseExactly, stringifyExactly } from "../exact-json.ts";
import { type Bytes, fromBase64, fromHex, fromLatin1, fromText, toBase64, toHex, toLatin1, toText } from "./bytes.ts";
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

/** A change of a JSON body; it does not apply to another body. */
const ifJson =
  (change: BodyChange): BodyChange =>
  (body) => {
    try {
      return change(body);
    } catch {
      return undefined;
    }
  };

/** Parses and serializes a JSON body. Numbers keep their digits. */
const reserialize = (serialize: (value: unknown) => string): BodyChange =>
  ifJson((body) => serialize(parseExactly(toText(body).replace(/^\ufeff/, ""))));

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !isExactNumber(value);

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

/** Rows with the same code and fix, by their messages. */
const rows = <Change>(code: string, fix: string, changes: Record<string, Change>): MistakeRow<Change>[] =>
  Object.entries(changes).map(([message, change]) => ({ code, message, fix, change }));

const whitespace = (code: string, message: string, change: BodyChange): MistakeRow<BodyChange> => ({
  code,
  message,
  fix: saveRawBytes,
  change,
});
const replaced =
  (pattern: RegExp, by: string): BodyChange =>
  (body) =>
    toText(body).replace(pattern, by);

/** The same JSON in another format. */
const formats: Record<string, BodyChange> = {
  "without white space": reserialize(compact),
  "with the separators ', ' and ': '": reserialize(withSpaces),
  "with the separators ', ' and ': ', and with non-ASCII characters escaped": reserialize((value) =>
    escapeUnicode(withSpaces(value)),
  ),
  "indented with two spaces": reserialize((value) => stringifyExactly(value, 2)),
  "indented with four spaces": reserialize((value) => stringifyExactly(value, 4)),
  "indented with tabs": reserialize((value) => stringifyExactly(value, "\t")),
  "with non-ASCII characters escaped": reserialize((value) => escapeUnicode(compact(value))),
  "with slashes escaped": reserialize((value) => compact(value).replaceAll("/", "\\/")),
  "with slashes and non-ASCII characters escaped": reserialize((value) =>
    escapeUnicode(compact(value)).replaceAll("/", "\\/"),
  ),
  "with <, > and & escaped": reserialize((value) =>
    compact(value).replaceAll(/[<>&]/g, (mark) => `\\u00${mark.charCodeAt(0).toString(16)}`),
  ),
  "with sorted keys": reserialize((value) => compact(sortKeys(value))),
  "with the fields in the order in which they were sent": reserialize((value) => compact(inSendingOrder(value))),
  "with the fields in the order in which they were sent, url and status first": reserialize((value) =>
    compact(inSendingOrder(value, ["url", "status"])),
  ),
  "with numbers rounded to double precision": ifJson((body) => JSON.stringify(JSON.parse(toText(body)))),
};

export const bodies: MistakeRow<BodyChange>[] = [
  whitespace("newline_added", "The body ends with a line break that was not signed.", replaced(/\r?\n$/, "")),
  whitespace("newline_trimmed", "The line break at the end of the signed body is missing.", replaced(/$/, "\n")),
  whitespace(
    "newline_trimmed",
    "The line break (CR LF) at the end of the signed body is missing.",
    replaced(/$/, "\r\n"),
  ),
  whitespace("crlf_added", "The line breaks are CR LF, but those of the signed body are LF.", replaced(/\r\n/g, "\n")),
  whitespace(
    "crlf_lost",
    "The line breaks are LF, but those of the signed body are CR LF.",
    replaced(/\r?\n/g, "\r\n"),
  ),
  whitespace("bom_added", "The body starts with a byte order mark that was not signed.", replaced(/^\ufeff/, "")),
  whitespace("bom_lost", "The byte order mark at the start of the signed body is missing.", replaced(/^/, "\ufeff")),
  whitespace("whitespace_added", "The body is surrounded by white space that was not signed.", (body) =>
    toText(body).trim(),
  ),
  ...Object.entries(formats).map(([format, change]) => ({
    code: "body_reserialised",
    message: `The body was parsed and serialized again: the signature matches the same JSON ${format}.`,
    fix: verifyRawBytes,
    change,
  })),
  ...rows<BodyChange>("body_stringified_twice", verifyRawBytes, {
    "The signature matches the body encoded as a JSON string, in quotes.": (body) => JSON.stringify(toText(body)),
    "The body is a JSON string that contains the signed body: it was encoded twice.": ifJson((body) => {
      const inner: unknown = JSON.parse(toText(body));
      return typeof inner === "string" ? inner : undefined;
    }),
  }),
  ...rows<BodyChange>("body_base64", "Decode it first. API Gateway and Lambda report this in isBase64Encoded.", {
    "The body is base64: the signature matches the decoded body.": (body) =>
      /^[\w+/]+=*\s*$/.test(toText(body)) ? fromBase64(toText(body)) : undefined,
  }),
  ...rows<BodyChange>("body_base64", "Sign the body itself.", {
    "The signature matches the base64 of the body.": toBase64,
  }),
  ...rows<BodyChange>("body_wrong_charset", verifyRawBytes, {
    "The body was decoded with the wrong character set (Latin-1 or UTF-8).": (body) => fromLatin1(toText(body)),
    "The signature matches the body decoded as Latin-1 and encoded as UTF-8.": toLatin1,
  }),
  ...rows<BodyChange>("body_normalised", verifyRawBytes, {
    "The body was normalized: the signature matches its Unicode form NFC.": (body) => toText(body).normalize("NFC"),
    "The body was normalized: the signature matches its Unicode form NFD.": (body) => toText(body).normalize("NFD"),
  }),
  ...rows<BodyChange>("body_not_read", "Read the raw body once, before a body parser reads it.", {
    "The signature matches an empty body: the body was already read, or not read yet.": () => "",
    "The signature matches {}: the initial value of a body parser that did not run.": () => "{}",
  }),
  ...rows<BodyChange>("body_not_text", verifyRawBytes, {
    'The signature matches "[object Object]": a parsed body was converted to text.': () => "[object Object]",
  }),
];

export const caseChanged: Finding = {
  code: "secret_case",
  message: "The case of the secret was changed.",
  fix: "Use the secret as it was shown, in lower case.",
};

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
  { ...caseChanged, change: (secret) => secret.toLowerCase() },
];

const part = (secret: string): string => secret.replace(/^whsec_/, "");

const keyRows = (fix: string, changes: Record<string, KeyChange>) => rows("wrong_key", fix, changes);

export const keysOf = new Map<Scheme, MistakeRow<KeyChange>[]>([
  [
    serviceSignature,
    keyRows("The key of X-Service-Signature is the whole secret as text, including whsec_.", {
      "The key is the secret without whsec_.": (secret) => fromText(part(secret)),
      "The key is the part after whsec_ decoded as base64.": (secret) => fromBase64(part(secret)),
      "The key is the part after whsec_ decoded as hex.": (secret) => fromHex(part(secret)),
      "The key is the whole secret decoded as base64.": fromBase64,
      "The key is the base64 of the secret.": (secret) => fromText(toBase64(fromText(secret))),
      "The key is the SHA-256 of the secret.": (secret) => sha256(fromText(secret)),
    }),
  ],
  [
    standardWebhooks,
    keyRows("The key of webhook-signature is the part after whsec_, decoded as base64.", {
      "The key is the whole secret as text.": fromText,
      "The key is the part after whsec_ as text, not decoded.": (secret) => fromText(part(secret)),
      "The key is the part after whsec_ decoded as hex.": (secret) => fromHex(part(secret)),
      "The key is the whole secret, including whsec_, decoded as base64.": (secret) =>
        secret.startsWith("whsec_") ? fromBase64(secret) : fromText(secret),
    }),
  ],
]);

const contentRows = (fix: string, changes: Record<string, ContentChange>) => rows("wrong_content", fix, changes);

/** What was signed instead of the documented content. */
export const contentsOf = new Map<Scheme, MistakeRow<ContentChange>[]>([
  [
    serviceSignature,
    contentRows("X-Service-Signature covers only the body.", {
      "The signed content is <webhook-id>.<webhook-timestamp>.<body>.": standardWebhooks.content,
      "The signed content is <timestamp>.<body>.": ({ timestamp, body }) => prepend(`${timestamp}.`, body),
    }),
  ],
  [
    standardWebhooks,
    contentRows("webhook-signature covers <webhook-id>.<webhook-timestamp>.<body>, including the periods.", {
      "The signed content is only the body.": ({ body }) => body,
      "The signed content is <timestamp>.<body>, without the id.": ({ timestamp, body }) =>
        prepend(`${timestamp}.`, body),
      "The signed content is <id>.<body>, without the timestamp.": ({ id, body }) => prepend(`${id}.`, body),
      "The signed content is <timestamp>.<id>.<body>: id and timestamp are swapped.": ({ id, timestamp, body }) =>
        prepend(`${timestamp}.${id}.`, body),
      "The signed content has no periods between its parts.": ({ id, timestamp, body }) =>
        prepend(`${id}${timestamp}`, body),
      "The timestamp is in milliseconds, but the signed timestamp is in seconds.": ({ id, timestamp, body }) =>
        /^\d{13}$/.test(timestamp) ? prepend(`${id}.${timestamp.slice(0, 10)}.`, body) : undefined,
      "The signed timestamp is in milliseconds.": ({ id, timestamp, body }) => prepend(`${id}.${timestamp}000.`, body),
    }),
  ],
]);

export const macs: MistakeRow<MacChange>[] = [
  ...rows<MacChange>("wrong_algorithm", "Use HMAC-SHA-256.", {
    "The signature uses SHA-1.": (key, content) => hmac(key, content, "SHA-1"),
    "The signature uses SHA-512.": (key, content) => hmac(key, content, "SHA-512"),
  }),
  ...rows<MacChange>("no_hmac", "Use HMAC-SHA-256 with the secret as the key.", {
    "The signature is a plain SHA-256 of the body, without the secret.": (_key, content) => sha256(content),
    "The signature is a plain SHA-256 of the secret followed by the body.": sha256,
  }),
  ...rows<MacChange>("arguments_swapped", "Use the secret as the key and the body as the content.", {
    "The arguments are swapped: the body was used as the key.": (key, content) => hmac(content, key),
  }),
];

const lowerHex = "X-Service-Signature is sha256= followed by 64 lower-case hex digits.";
const v1Base64 = 'Each signature in webhook-signature is "v1," followed by base64 with padding.';
const withoutPadding = (mac: Bytes) => toBase64(mac).replace(/=+$/, "");
const hexAsBase64 = (mac: Bytes) => toBase64(fromText(toHex(mac)));

export const encodingsOf = new Map<Scheme, MistakeRow<EncodingChange>[]>([
  [
    serviceSignature,
    [
      ...rows<EncodingChange>("upper_case_hex", lowerHex, {
        "The hex digits are in upper case.": (mac) => `sha256=${toHex(mac).toUpperCase()}`,
      }),
      ...rows<EncodingChange>("prefix_missing", lowerHex, {
        "The prefix sha256= is missing.": toHex,
        "The prefix is not sha256=.": (mac) => `v1,${toHex(mac)}`,
      }),
      ...rows<EncodingChange>("wrong_encoding", lowerHex, {
        "The signature is base64 instead of hex.": (mac) => `sha256=${toBase64(mac)}`,
        "The signature is base64 instead of hex, and lacks sha256=.": toBase64,
        "The signature is the base64 of the hex digits.": (mac) => `sha256=${hexAsBase64(mac)}`,
      }),
    ],
  ],
  [
    standardWebhooks,
    [
      ...rows<EncodingChange>("prefix_missing", v1Base64, {
        'The version prefix "v1," is missing.': toBase64,
        'The version prefix is "v1=" instead of "v1,".': (mac) => `v1=${toBase64(mac)}`,
      }),
      ...rows<EncodingChange>("wrong_encoding", v1Base64, {
        "The signature is hex instead of base64.": (mac) => `v1,${toHex(mac)}`,
        'The signature is hex instead of base64, and lacks the version prefix "v1,".': toHex,
        "The signature is base64url, with - and _.": (mac) =>
          `v1,${withoutPadding(mac).replaceAll("+", "-").replaceAll("/", "_")}`,
        "The padding (=) at the end of the base64 is missing.": (mac) => `v1,${withoutPadding(mac)}`,
        "The signature is the base64 of the hex digits.": (mac) => `v1,${hexAsBase64(mac)}`,
      }),
    ],
  ],
]);
