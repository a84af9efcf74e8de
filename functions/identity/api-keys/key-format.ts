/*
 * The format of API keys, and the search for keys in a text. Without imports: `svc keys revoke-leaked` searches as the service
 * does.
 */

/** Prefix of user-created and of provisioned keys. Partner keys have the prefix `svcp_`, which does not match it. */
export const API_KEY_PREFIX = "svc_";
const API_KEY = /^svc_[0-9a-f]{64}$/;
const CHECKSUM_CHARACTERS = 8;

/**
 * Returns whether a token has the format and the checksum of a key. Exact match: no trimming, case folding or decoding.
 * The checksum is no secret. It rejects typing errors and made-up keys without a read, and lets secret scanners tell a
 * key from similar text.
 */
export const isApiKey = (token: string): boolean =>
  API_KEY.test(token) && token.endsWith(checksum(token.slice(0, -CHECKSUM_CHARACTERS)));

/** Returns the CRC-32 (ISO 3309, as in zlib and gzip) of an ASCII text: 8 hex characters. */
export function checksum(text: string): string {
  let crc = -1;
  for (const character of text) {
    crc ^= character.charCodeAt(0);
    for (let bit = 0; bit < 8; bit++) crc = (crc >>> 1) ^ (crc & 1 ? 0xedb88320 : 0);
  }
  return (~crc >>> 0).toString(16).padStart(CHECKSUM_CHARACTERS, "0");
}

/** A character that is encoded for a URL, JSON, a shell or HTML: %5F, \u005f, \x5f, &#x5f; */
const ENCODED = /(?:%|\\x|\\u|&#x)((?<=\\u)[0-9a-f]{4}|[0-9a-f]{2});?/gi;
/** Joiners, byte order marks, soft hyphens, and the zero bytes of UTF-16. Not white space, which ends an imported key. */
const INVISIBLE = /[\p{Cf}\p{Default_Ignorable_Code_Point}\0]/gu;
const OWN_KEY = /svc_[0-9a-f]{64}/gi;
/** An imported key is a bearer token (RFC 6750). Longer ones are found only if a text has nothing else. */
const TOKEN = /[A-Za-z0-9._~+/=-]{1,200}/y;
/** An imported key that is shorter, beside its prefix, is found only if a text has nothing else: words may contain the prefix. */
const MIN_IMPORTED_CHARACTERS = 8;

/**
 * Finds the API keys in a text, whatever surrounds them, also if the text is encoded for a URL or JSON, or was wrapped.
 * @param prefixes those of imported keys, which have neither a length nor a checksum
 * @returns the different keys; an imported key with the bearer characters that follow it (`formsOf`)
 */
export function keysIn(text: string, prefixes: readonly string[] = []): string[] {
  const plain = decoded(decoded(text)).replaceAll(INVISIBLE, "");
  // Removing what cannot be in a key hides no key, and the checksum rejects what it joins by mistake.
  const own = plain.replaceAll(/[\p{C}\p{Z}\\]/gu, "").match(OWN_KEY) ?? [];
  const found = new Set(own.map((key) => key.toLowerCase()).filter(isApiKey));
  for (const rest of [text, plain].map((each) => each.replaceAll(OWN_KEY, " ").trim())) {
    for (const prefix of prefixes) {
      for (let at = rest.indexOf(prefix); at >= 0; at = rest.indexOf(prefix, at + 1)) {
        TOKEN.lastIndex = at;
        const run = TOKEN.exec(rest)?.[0] ?? "";
        if (run === rest || run.length >= prefix.length + MIN_IMPORTED_CHARACTERS) found.add(run);
      }
    }
  }
  return [...found];
}

const decoded = (text: string): string =>
  text.replaceAll(ENCODED, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));

/** Where a key may end within bearer characters: before each group of punctuation, after padding, and after the last character. */
const ENDS = /(?<![._~+/=-])[._~+/=-]|(?<==)(?!=)|$/g;
const MAX_FORMS = 10;

/**
 * Returns what the key may be that `keysIn` has found: an imported key ends at one of several places. Of more than ten, the last
 * is kept, for a text with nothing else, and the first ones: what follows a key, such as a path, may be of any length.
 */
export const formsOf = (found: string): string[] => {
  if (isApiKey(found)) return [found];
  const forms = new Set([...found.matchAll(ENDS)].map(({ index }) => found.slice(0, index)));
  return [...forms].filter((_, at) => at < MAX_FORMS - 1 || at === forms.size - 1);
};
