import type { IncomingHttpHeaders } from "node:http";

/*
 * The headers of a response that are kept to explain a failed attempt. Cookies and credentials are never kept. Not those of a
 * success: with the headers of a usual proxy, the row of a delivery exceeds 1 KB, and its write costs twice as much.
 */

/** Upper bound on the headers kept, in the order in which they arrive. */
const MAX_HEADERS = 10;
/** Upper bound on the bytes of all names and values. A row has those of three attempts, and is paid by the KB. */
const MAX_BYTES = 512;
/** Bytes of a value. A longer one is cut. */
const MAX_VALUE_BYTES = 200;

/** Headers of the connection, and names of cookies and credentials. `www-authenticate` only asks for a credential. */
const LEFT_OUT =
  /^(connection|keep-alive|transfer-encoding|date)$|cookie|(?<!^www-)auth|token|secret|passw|session|credential|[cx]srf|jwt|key|signature/;

/** A header that is longer than this is not searched for credentials, and not kept. */
const MAX_SEARCHED_CHARACTERS = 1_000;

/** A long random text, a JWT, a key with a prefix, a credential after its scheme, a parameter named like one, a URL with a password. */
const CREDENTIAL =
  /[\w+/=-]{40,}|\beyJ[\w-]+\.\w|\b[a-z]{2,8}_\w{16,}|\b(bearer|basic)\s+[\w+/.~-]{8,}=*(?![\w="])|(token|secret|passw|session|credential|key|signature|auth|code|jwt)[\w-]*["']?\s*[=:]|\/\/[^/\s:]*:[^/\s@]*@/i;

/**
 * Returns the headers to keep.
 * @param clean makes a text safe to show, up to a number of bytes
 */
export function keptHeaders(
  headers: IncomingHttpHeaders,
  clean: (bytes: Uint8Array, maxBytes: number) => string,
): Record<string, string> {
  const kept: [name: string, value: string][] = [];
  let bytesLeft = MAX_BYTES;
  for (const [name, value] of Object.entries(headers)) {
    if (kept.length === MAX_HEADERS) break;
    if (typeof value !== "string" || LEFT_OUT.test(name) || isCredential(value)) continue;
    // Node decodes each byte as one character.
    const text = clean(Buffer.from(value, "latin1"), MAX_VALUE_BYTES);
    const bytes = Buffer.byteLength(name) + Buffer.byteLength(text);
    if (bytes > bytesLeft) continue;
    bytesLeft -= bytes;
    kept.push([name, text]);
  }
  return Object.fromEntries(kept);
}

const isCredential = (value: string): boolean => value.length > MAX_SEARCHED_CHARACTERS || CREDENTIAL.test(value);
