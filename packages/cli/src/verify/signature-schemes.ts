import { createHmac } from "node:crypto";
import { standardKey } from "../../../client/src/verify/standard-key.ts";

/*
 * The two signatures of a delivery, as a receiver computes them from the documentation. Pure. Not shared with the service's
 * own code, so that a bug there cannot hide here.
 */

/** The inputs of a signature. `id` and `timestamp` come from the headers, and are empty when absent. */
export interface SignatureInput {
  id: string;
  timestamp: string;
  body: Buffer;
}

export interface Scheme {
  /** The name of the header, in its documented case. */
  header: string;
  /** The header with the signatures of old secrets; undefined when `header` contains them too. */
  previousHeader?: string;
  /** Splits a header value into its signatures. */
  split(value: string): string[];
  key(secret: string): string | Uint8Array;
  content(input: SignatureInput): Buffer | undefined;
  /** Encodes a MAC for the header. */
  encode(mac: Buffer): string;
}

export const serviceSignature: Scheme = {
  header: "X-Service-Signature",
  previousHeader: "X-Service-Signature-Previous",
  split: (value) => value.split(",").map((part) => part.trim()),
  key: (secret) => secret,
  content: ({ body }) => body,
  encode: (mac) => `sha256=${mac.toString("hex")}`,
};

/** https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md */
export const standardWebhooks: Scheme = {
  header: "webhook-signature",
  split: (value) => value.split(" "),
  key: standardKey,
  content: ({ id, timestamp, body }) => prepend(`${id}.${timestamp}.`, body),
  encode: (mac) => `v1,${mac.toString("base64")}`,
};

export const prepend = (prefix: string, body: Buffer): Buffer => Buffer.concat([Buffer.from(prefix), body]);

export const hmac = (key: string | Uint8Array, content: Uint8Array, algorithm = "sha256"): Buffer =>
  createHmac(algorithm, key).update(content).digest();

export const signatureOf = ({ key, content, encode }: Scheme, secret: string, input: SignatureInput): string =>
  encode(hmac(key(secret), content(input) ?? Buffer.alloc(0)));
