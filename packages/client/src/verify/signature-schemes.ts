import { type Bytes, concat, fromText, standardKey, toBase64, toHex } from "./bytes.ts";
import { hmac } from "./hashes.ts";

/*
 * The two signatures of a delivery, as a receiver computes them from the documentation. Pure. Not shared with the service's
 * own code, so that a bug there cannot hide here.
 */

/** The inputs of a signature. `id` and `timestamp` come from the headers, and are empty when absent. */
export interface SignatureInput {
  id: string;
  timestamp: string;
  body: Bytes;
}

export interface Scheme {
  /** The name of the header, in its documented case. */
  header: string;
  /** The header with the signatures of old secrets; undefined when `header` contains them too. */
  previousHeader?: string;
  /** Splits a header value into its signatures. */
  split(value: string): string[];
  key(secret: string): Bytes;
  content(input: SignatureInput): Bytes;
  /** Encodes a MAC for the header. */
  encode(mac: Bytes): string;
}

export const serviceSignature: Scheme = {
  header: "X-Service-Signature",
  previousHeader: "X-Service-Signature-Previous",
  split: (value) => value.split(",").map((part) => part.trim()),
  key: fromText,
  content: ({ body }) => body,
  encode: (mac) => `sha256=${toHex(mac)}`,
};

/** https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md */
export const standardWebhooks: Scheme = {
  header: "webhook-signature",
  split: (value) => value.split(" "),
  key: standardKey,
  content: ({ id, timestamp, body }) => prepend(`${id}.${timestamp}.`, body),
  encode: (mac) => `v1,${toBase64(mac)}`,
};

export const prepend = (prefix: string, body: Bytes): Bytes => concat(fromText(prefix), body);

export const signatureOf = async (
  { key, content, encode }: Scheme,
  secret: string,
  input: SignatureInput,
): Promise<string> => encode(await hmac(key(secret), content(input)));
