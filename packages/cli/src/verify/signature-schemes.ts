import { createHmac } from "node:crypto";

/*
 * The two signatures of a delivery as a receiver computes them, from what the README promises. Pure, and apart from the
 * service's own code: what is checked here must not be right only because both are wrong.
 */

/** What a signature is made of. `id` and `timestamp` are those of the headers, empty when absent. */
export interface Signable {
  id: string;
  timestamp: string;
  body: Buffer;
}

export interface Scheme {
  /** The header, as it is written. */
  header: string;
  /** Where older secrets sign too, when that is another header. */
  previousHeader?: string;
  /** The signatures that a header value holds. */
  split(value: string): string[];
  key(secret: string): Buffer;
  content(signable: Signable): Buffer;
  /** Writes a MAC as the header has it. */
  write(mac: Buffer): string;
}

export const serviceSignature: Scheme = {
  header: "X-Service-Signature",
  previousHeader: "X-Service-Signature-Previous",
  split: (value) => value.split(",").map((part) => part.trim()),
  key: (secret) => Buffer.from(secret),
  content: ({ body }) => body,
  write: (mac) => `sha256=${mac.toString("hex")}`,
};

/** https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md */
export const standardWebhooks: Scheme = {
  header: "webhook-signature",
  split: (value) => value.split(" ").filter((part) => part !== ""),
  key: (secret) => Buffer.from(secret.replace(/^whsec_/, ""), "base64"),
  content: ({ id, timestamp, body }) => joined(`${id}.${timestamp}.`, body),
  write: (mac) => `v1,${mac.toString("base64")}`,
};

export const hmac = (key: Buffer | string, content: Buffer): Buffer =>
  createHmac("sha256", key).update(content).digest();

export const joined = (head: string, body: Buffer): Buffer => Buffer.concat([Buffer.from(head), body]);

export const signatureOf = ({ key, content, write }: Scheme, secret: string, signable: Signable): string =>
  write(hmac(key(secret), content(signable)));
