import { createHash } from "node:crypto";
import { isExactNumber, parseExactly, stringifyExactly } from "../../../client/src/exact-json.ts";
import {
  hmac,
  prepend,
  type Scheme,
  type SignatureInput,
  serviceSignature,
  standardWebhooks,
} from "./signature-schemes.ts";

/* The usual mistakes in verifying a signature. A row has the step that repeats or undoes its mistake. */

export interface Finding {
  /** Identifies the kind of mistake. Part of `--json`, and so never changed. */
  code: string;
  message: string;
  fix: string;
}

/** The steps from a secret and a request to a signature. Undefined: the step does not apply to this value. */
interface Steps extends Pick<Scheme, "key" | "content" | "encode"> {
  secret(secret: string): string | undefined;
  /** Returns the body that may have been signed. */
  body(body: Buffer): Buffer | string | undefined;
  mac(key: string | Uint8Array, content: Buffer): Buffer;
}

export type Mistake = Finding & { steps: Partial<Steps> };

/** Returns the signature that a mistake leads to; undefined if the mistake does not apply. */
export function mistakenSignature(scheme: Scheme, { steps }: Mistake, secret: string, input: SignatureInput) {
  const { key, content, encode } = { ...scheme, ...steps };
  const { secret: secretStep = String, body: bodyStep = Buffer.from, mac = hmac } = steps;
  const [usedSecret, usedBody] = [secretStep(secret), bodyStep(input.body)];
  if (usedSecret === undefined || usedBody === undefined) return undefined;
  const signed = content({ ...input, body: Buffer.from(usedBody) });
  return signed && encode(mac(key(usedSecret), signed));
}

/** Rows of one step with the same code and fix, by their messages. */
const rows = <Name extends keyof Steps>(step: Name, code: string, fix: string, changes: Record<string, Steps[Name]>) =>
  Object.entries(changes).map(([message, change]): Mistake => ({ code, message, fix, steps: { [step]: change } }));

type BodyChange = Steps["body"];

const verifyRawBytes = "Verify the exact bytes that were received, before any code parses or converts them.";
const saveRawBytes = "Save the exact bytes of the body, without an editor, echo or copy and paste.";

/** A change of a JSON body; it does not apply to another body. */
const ifJson =
  (change: (text: string) => string | undefined): BodyChange =>
  (body) => {
    try {
      return change(body.toString().replace(/^\ufeff/, ""));
    } catch {
      return undefined;
    }
  };

/** Parses and serializes a JSON body. Numbers keep their digits. */
const reserialize = (serialize: (value: unknown) => string) => ifJson((text) => serialize(parseExactly(text)));

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !isExactNumber(value);

/** Orders the fields of an event as the service sends them. */
function inSendingOrder(value: unknown): unknown {
  if (!isObject(value)) return value;
  const { event, project_id, deployment_id, timestamp, data, ...rest } = value;
  return { event, project_id, deployment_id, timestamp, data, ...rest };
}

/** Serializes with the separators ", " and ": ", as Python does. */
function withSpaces(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(withSpaces).join(", ")}]`;
  if (!isObject(value)) return stringifyExactly(value);
  const parts = Object.entries(value).map(([name, part]) => `${JSON.stringify(name)}: ${withSpaces(part)}`);
  return `{${parts.join(", ")}}`;
}

const compact = (value: unknown): string => stringifyExactly(value);
const escaped = (json: string, units: RegExp): string =>
  json.replaceAll(units, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`);
const NOT_ASCII = /[\u0080-\uffff]/g;

/** The same JSON in another format. */
const formats: Record<string, BodyChange> = {
  "without white space": reserialize(compact),
  "with the separators ', ' and ': '": reserialize(withSpaces),
  "with the separators ', ' and ': ', and with non-ASCII characters escaped": reserialize((value) =>
    escaped(withSpaces(value), NOT_ASCII),
  ),
  "indented with two spaces": reserialize((value) => stringifyExactly(value, 2)),
  "with non-ASCII characters escaped": reserialize((value) => escaped(compact(value), NOT_ASCII)),
  "with slashes escaped": reserialize((value) => compact(value).replaceAll("/", "\\/")),
  "with slashes and non-ASCII characters escaped": reserialize((value) =>
    escaped(compact(value), NOT_ASCII).replaceAll("/", "\\/"),
  ),
  "with <, > and & escaped": reserialize((value) => escaped(compact(value), /[<>&]/g)),
  "with the fields in the order in which they were sent": reserialize((value) => compact(inSendingOrder(value))),
  "with numbers rounded to double precision": ifJson((text) => JSON.stringify(JSON.parse(text))),
};

const replaced =
  (pattern: RegExp, by: string): BodyChange =>
  (body) =>
    body.toString().replace(pattern, by);

const bodies: Mistake[] = [
  ...rows("body", "newline_added", saveRawBytes, {
    "The body ends with a line break that was not signed.": replaced(/\r?\n$/, ""),
  }),
  ...rows("body", "newline_trimmed", saveRawBytes, {
    "The line break at the end of the signed body is missing.": replaced(/$/, "\n"),
    "The line break (CR LF) at the end of the signed body is missing.": replaced(/$/, "\r\n"),
  }),
  ...rows("body", "crlf_added", saveRawBytes, {
    "The line breaks are CR LF, but those of the signed body are LF.": replaced(/\r\n/g, "\n"),
  }),
  ...rows("body", "crlf_lost", saveRawBytes, {
    "The line breaks are LF, but those of the signed body are CR LF.": replaced(/\r?\n/g, "\r\n"),
  }),
  ...rows("body", "bom_added", saveRawBytes, {
    "The body starts with a byte order mark that was not signed.": replaced(/^\ufeff/, ""),
  }),
  ...rows("body", "bom_lost", saveRawBytes, {
    "The byte order mark at the start of the signed body is missing.": replaced(/^/, "\ufeff"),
  }),
  ...rows("body", "whitespace_added", saveRawBytes, {
    "The body is surrounded by white space that was not signed.": (body) => body.toString().trim(),
  }),
  ...Object.entries(formats).flatMap(([format, change]) =>
    rows("body", "body_reserialised", verifyRawBytes, {
      [`The body was parsed and serialized again: the signature matches the same JSON ${format}.`]: change,
    }),
  ),
  ...rows("body", "body_stringified_twice", verifyRawBytes, {
    "The signature matches the body encoded as a JSON string, in quotes.": (body) => JSON.stringify(body.toString()),
    "The body is a JSON string that contains the signed body: it was encoded twice.": ifJson((text) => {
      const inner: unknown = JSON.parse(text);
      return typeof inner === "string" ? inner : undefined;
    }),
  }),
  ...rows("body", "body_base64", "Decode it first. API Gateway and Lambda report this in isBase64Encoded.", {
    "The body is base64: the signature matches the decoded body.": (body) => Buffer.from(body.toString(), "base64"),
  }),
  ...rows("body", "body_base64", "Sign the body itself.", {
    "The signature matches the base64 of the body.": (body) => body.toString("base64"),
  }),
  ...rows("body", "body_wrong_charset", verifyRawBytes, {
    "The body was decoded with the wrong character set (Latin-1 or UTF-8).": (body) =>
      Buffer.from(body.toString(), "latin1"),
    "The signature matches the body decoded as Latin-1 and encoded as UTF-8.": (body) => body.toString("latin1"),
  }),
  ...rows("body", "body_not_read", "Read the raw body once, before a body parser reads it.", {
    "The signature matches an empty body: the body was already read, or not read yet.": () => "",
    "The signature matches {}: the initial value of a body parser that did not run.": () => "{}",
  }),
  ...rows("body", "body_not_text", verifyRawBytes, {
    'The signature matches "[object Object]": a parsed body was converted to text.': () => "[object Object]",
  }),
];

export const caseChanged: Finding = {
  code: "secret_case",
  message: "The case of the secret was changed.",
  fix: "Use the secret as it was shown, in lower case.",
};

const secrets: Mistake[] = [
  ...rows(
    "secret",
    "secret_whitespace",
    "Trim it when you read it: files and pasted values often end with a line break.",
    {
      "The secret is surrounded by white space or a line break.": (secret) => secret.trim(),
    },
  ),
  ...rows("secret", "secret_quoted", "Remove the quotes: env files and containers keep them.", {
    "The secret is enclosed in quotes.": (secret) => /^\s*(["'])(.*)\1\s*$/.exec(secret)?.[2],
  }),
  ...rows("secret", "secret_without_prefix", "Use the whole secret as it was shown.", {
    "The secret lacks whsec_, which is part of it.": (secret) =>
      secret.startsWith("whsec_") ? undefined : `whsec_${secret}`,
  }),
  { ...caseChanged, steps: { secret: (secret) => secret.toLowerCase() } },
];

const macs: Mistake[] = [
  ...rows("mac", "wrong_algorithm", "Use HMAC-SHA-256.", {
    "The signature uses SHA-1.": (key, content) => hmac(key, content, "sha1"),
    "The signature uses SHA-512.": (key, content) => hmac(key, content, "sha512"),
  }),
  ...rows("mac", "no_hmac", "Use HMAC-SHA-256 with the secret as the key.", {
    "The signature is a plain SHA-256 of the body, without the secret.": (_key, content) =>
      createHash("sha256").update(content).digest(),
    "The signature is a plain SHA-256 of the secret followed by the body.": (key, content) =>
      createHash("sha256").update(key).update(content).digest(),
  }),
  ...rows("mac", "arguments_swapped", "Use the secret as the key and the body as the content.", {
    "The arguments are swapped: the body was used as the key.": (key, content) => hmac(content, Buffer.from(key)),
  }),
];

const part = (secret: string): string => secret.replace(/^whsec_/, "");
const wholeSecret = "The key of X-Service-Signature is the whole secret as text, including whsec_.";
const decodedPart = "The key of webhook-signature is the part after whsec_, decoded from base64.";
const onlyBody = "X-Service-Signature covers only the body.";
const idTimeBody = "webhook-signature covers <webhook-id>.<webhook-timestamp>.<body>, including the periods.";
const lowerHex = "X-Service-Signature is sha256= followed by 64 lower-case hex digits.";
const v1Base64 = 'Each signature in webhook-signature is "v1," followed by base64 with padding.';

const ofService: Mistake[] = [
  ...rows("key", "wrong_key", wholeSecret, {
    "The key is the secret without whsec_.": part,
    "The key is the part after whsec_ decoded as base64.": (secret) => Buffer.from(part(secret), "base64"),
    "The key is the part after whsec_ decoded as hex.": (secret) => Buffer.from(part(secret), "hex"),
  }),
  ...rows("content", "wrong_content", onlyBody, {
    "The signed content is <webhook-id>.<webhook-timestamp>.<body>.": standardWebhooks.content,
    "The signed content is <timestamp>.<body>.": ({ timestamp, body }) => prepend(`${timestamp}.`, body),
  }),
  ...rows("encode", "upper_case_hex", lowerHex, {
    "The hex digits are in upper case.": (mac) => `sha256=${mac.toString("hex").toUpperCase()}`,
  }),
  ...rows("encode", "prefix_missing", lowerHex, {
    "The prefix sha256= is missing.": (mac) => mac.toString("hex"),
    "The prefix is not sha256=.": (mac) => `v1,${mac.toString("hex")}`,
  }),
  ...rows("encode", "wrong_encoding", lowerHex, {
    "The signature is base64 instead of hex.": (mac) => `sha256=${mac.toString("base64")}`,
    "The signature is base64 instead of hex, and lacks sha256=.": (mac) => mac.toString("base64"),
  }),
];

const ofStandard: Mistake[] = [
  ...rows("key", "wrong_key", decodedPart, {
    "The key is the whole secret as text.": String,
    "The key is the part after whsec_ as text, not decoded.": part,
    "The key is the part after whsec_ decoded as hex.": (secret) => Buffer.from(part(secret), "hex"),
    "The key is the whole secret, including whsec_, decoded from base64.": (secret) => Buffer.from(secret, "base64"),
  }),
  ...rows("content", "wrong_content", idTimeBody, {
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
  ...rows("encode", "prefix_missing", v1Base64, {
    'The version prefix "v1," is missing.': (mac) => mac.toString("base64"),
    'The version prefix is "v1=" instead of "v1,".': (mac) => `v1=${mac.toString("base64")}`,
  }),
  ...rows("encode", "wrong_encoding", v1Base64, {
    "The signature is hex instead of base64.": (mac) => `v1,${mac.toString("hex")}`,
    'The signature is hex instead of base64, and lacks the version prefix "v1,".': (mac) => mac.toString("hex"),
    "The signature is base64url, with - and _.": (mac) => `v1,${mac.toString("base64url")}`,
    "The padding (=) at the end of the base64 is missing.": (mac) => `v1,${mac.toString("base64").replace(/=+$/, "")}`,
  }),
];

/** Returns the mistakes with a scheme. The secrets are first: a key derived from a part of a secret looks like the wrong key. */
export const mistakesOf = (scheme: Scheme): Mistake[] => [
  ...secrets,
  ...(scheme === serviceSignature ? ofService : ofStandard),
  ...macs,
  ...bodies,
];
