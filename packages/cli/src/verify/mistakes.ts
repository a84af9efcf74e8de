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

const sameJson = (format: string): string =>
  `The body was parsed and serialized again: the signature matches the same JSON ${format}.`;

const bodies: Mistake[] = [
  ...rows("body", "newline_added", "Save the exact bytes of the body, without an editor, echo or copy and paste.", {
    "The body ends with a line break that was not signed.": (body) => body.toString().replace(/\r?\n$/, ""),
  }),
  ...rows("body", "body_reserialised", verifyRawBytes, {
    [sameJson("without white space")]: reserialize(compact),
    [sameJson("as Python writes it: with spaces after , and :, and with non-ASCII characters escaped")]: reserialize(
      (value) => escaped(withSpaces(value), NOT_ASCII),
    ),
    [sameJson("as PHP writes it: with slashes and non-ASCII characters escaped")]: reserialize((value) =>
      escaped(compact(value), NOT_ASCII).replaceAll("/", "\\/"),
    ),
    [sameJson("as Go writes it: with <, > and & escaped")]: reserialize((value) => escaped(compact(value), /[<>&]/g)),
    [sameJson("with numbers rounded to double precision")]: ifJson((text) => JSON.stringify(JSON.parse(text))),
  }),
  ...rows("body", "body_stringified_twice", verifyRawBytes, {
    "The signature matches the body encoded as a JSON string, in quotes.": (body) => JSON.stringify(body.toString()),
  }),
  ...rows("body", "body_base64", "Decode it first. API Gateway and Lambda report this in isBase64Encoded.", {
    "The body is base64: the signature matches the decoded body.": (body) => Buffer.from(body.toString(), "base64"),
  }),
  ...rows("body", "body_not_read", "Read the raw body once, before a body parser reads it.", {
    "The signature matches an empty body: the body was already read, or not read yet.": () => "",
    "The signature matches {}: the initial value of a body parser that did not run.": () => "{}",
  }),
  ...rows("body", "body_not_text", verifyRawBytes, {
    'The signature matches "[object Object]": a parsed body was converted to text.': () => "[object Object]",
  }),
];

const trimIt = "Trim it when you read it: files and pasted values often end with a line break.";
const secrets: Mistake[] = [
  ...rows("secret", "secret_whitespace", trimIt, {
    "The secret is surrounded by white space or a line break.": (secret) => secret.trim(),
  }),
  ...rows("secret", "secret_quoted", "Remove the quotes: env files and containers keep them.", {
    "The secret is enclosed in quotes.": (secret) => /^\s*(["'])(.*)\1\s*$/.exec(secret)?.[2],
  }),
  ...rows("secret", "secret_without_prefix", "Use the whole secret as it was shown.", {
    "The secret lacks whsec_, which is part of it.": (secret) =>
      secret.startsWith("whsec_") ? undefined : `whsec_${secret}`,
  }),
];

const macs: Mistake[] = [
  ...rows("mac", "wrong_algorithm", "Use HMAC-SHA-256.", {
    "The signature uses SHA-1.": (key, content) => hmac(key, content, "sha1"),
  }),
  ...rows("mac", "no_hmac", "Use HMAC-SHA-256 with the secret as the key.", {
    "The signature is a plain SHA-256 of the body, without the secret.": (_key, content) =>
      createHash("sha256").update(content).digest(),
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
  }),
  ...rows("encode", "wrong_encoding", lowerHex, {
    "The signature is base64 instead of hex.": (mac) => `sha256=${mac.toString("base64")}`,
  }),
];

const ofStandard: Mistake[] = [
  ...rows("key", "wrong_key", decodedPart, {
    "The key is the whole secret as text.": String,
    "The key is the part after whsec_ as text, not decoded.": part,
    "The key is the part after whsec_ decoded as hex.": (secret) => Buffer.from(part(secret), "hex"),
  }),
  ...rows("content", "wrong_content", idTimeBody, {
    "The signed content is only the body.": ({ body }) => body,
    "The signed content is <timestamp>.<body>, without the id.": ({ timestamp, body }) =>
      prepend(`${timestamp}.`, body),
    "The signed content is <id>.<body>, without the timestamp.": ({ id, body }) => prepend(`${id}.`, body),
  }),
  ...rows("encode", "prefix_missing", v1Base64, {
    'The version prefix "v1," is missing.': (mac) => mac.toString("base64"),
  }),
  ...rows("encode", "wrong_encoding", v1Base64, {
    "The signature is hex instead of base64.": (mac) => `v1,${mac.toString("hex")}`,
  }),
];

/** Returns the mistakes with a scheme. The secrets are first: a key derived from a part of a secret looks like the wrong key. */
export const mistakesOf = (scheme: Scheme): Mistake[] => [
  ...secrets,
  ...(scheme === serviceSignature ? ofService : ofStandard),
  ...macs,
  ...bodies,
];
