/** Patterns that must not appear in any log line, with the name of the secret that each matches. */
const secrets: [name: string, pattern: RegExp][] = [
  ["an API key beyond its prefix", /svcp?_[0-9a-f]{9}/i],
  ["a signing secret", /whsec_\w/],
  ["a JWT", /\beyJ[\w-]{5}/],
  ["a credential with its scheme", /\bbearer /i],
  ["an Authorization header", /authorization\W{1,20}\w/i],
  ["a signed AWS request", /AWS4-HMAC-SHA256/],
  ["a signature", /sha256=[0-9a-f]{8}|\bv1,[\w+/]{20}/],
  // Keys, signing secrets, their hashes and the JWT secrets of the tests have 64 hex digits; ids have 32, with dashes.
  ["a secret in hex, or its hash", /[0-9a-f]{40}/i],
  // `eventOf` in deliveries.ts puts this text into every event. Quotes may be escaped.
  ["the data of an event", /commit\W{1,20}c0ffee/],
  ["the query of a URL", /https?:\/\/[^\s"\\]*\?/],
];

/**
 * Lists the kinds of secrets found in a text.
 * @param known secrets of this run, compared literally
 * @returns the names of the patterns that matched; empty when the text is clean
 */
export function leaksIn(text: string, known: string[] = []): string[] {
  const isKnown = known.some((secret) => secret !== "" && text.includes(secret));
  const found = secrets.filter(([, pattern]) => pattern.test(text)).map(([name]) => name);
  return isKnown ? [...found, "a secret of this run"] : found;
}
