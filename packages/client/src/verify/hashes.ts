import { type Bytes, concat } from "./bytes.ts";

/* Hashes by Web Crypto, which Node and browsers have. In a browser it requires https or localhost. */

export type Algorithm = "SHA-1" | "SHA-256" | "SHA-512";

/** Web Crypto rejects an empty key. HMAC pads keys with zeros, so that a zero byte is the same key (RFC 2104). */
const EMPTY_KEY: Bytes = new Uint8Array(1);

export async function hmac(key: Bytes, content: Bytes, algorithm: Algorithm = "SHA-256"): Promise<Bytes> {
  const bytes = key.length === 0 ? EMPTY_KEY : key;
  const imported = await crypto.subtle.importKey("raw", bytes, { name: "HMAC", hash: algorithm }, false, ["sign"]);
  return new Uint8Array(await crypto.subtle.sign("HMAC", imported, content));
}

export const sha256 = async (...parts: Bytes[]): Promise<Bytes> =>
  new Uint8Array(await crypto.subtle.digest("SHA-256", concat(...parts)));
