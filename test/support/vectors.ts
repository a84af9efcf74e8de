import { createHmac } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";

/** A delivery of docs/vectors.json, whose fields docs/receivers/README.md explains. */
export interface Vector {
  name: string;
  scheme: "standard" | "body";
  secrets: string[];
  body: string;
  headers: Record<string, string>;
  now: number;
  valid: boolean;
  test?: true;
  error?: "missing_header" | "timestamp_too_old" | "timestamp_too_new" | "invalid_timestamp" | "no_matching_signature";
  why?: string;
}

interface Keys {
  secret: string;
  body_key_hex: string;
  standard_key_hex: string;
}

/** The published test vectors, and the keys of each of their secrets. */
export const {
  vectors,
  public_key_vectors: publicKeyVectors,
  keys,
}: { vectors: Vector[]; public_key_vectors: Vector[]; keys: Keys[] } = JSON.parse(
  readFileSync(join(import.meta.dirname, "../../docs/vectors.json"), "utf8"),
);

/** The service sends no leading zeros. A receiver verifies the timestamp as it was signed, and reads it as a decimal number. */
export const vectorWithLeadingZeros = leadingZeros();

function leadingZeros(): Vector {
  const [now, id, body] = [1_795_233_869, "1", '{"event":"deploy.started","data":{}}'];
  const key = "0f".repeat(32);
  const signature = createHmac("sha256", Buffer.from(key, "base64")).update(`${id}.00${now}.${body}`).digest("base64");
  const headers = { "webhook-id": id, "webhook-timestamp": `00${now}`, "webhook-signature": `v1,${signature}` };
  return { name: "leading zeros", scheme: "standard", secrets: [`whsec_${key}`], body, headers, now, valid: true };
}
