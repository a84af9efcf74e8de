/** What must stand in no line that the functions write: what it is, and how it looks. */
const secrets: [what: string, pattern: RegExp][] = [
  ["an API key beyond its prefix", /svcp?_[0-9a-f]{9}/i],
  ["a signing secret", /whsec_\w/],
  ["a JWT", /\beyJ[\w-]{5}/],
  ["a credential with its scheme", /\bbearer /i],
  ["an Authorization header", /authorization\W{1,20}\w/i],
  ["a signed AWS request", /AWS4-HMAC-SHA256/],
  ["a signature", /sha256=[0-9a-f]{8}|\bv1,[\w+/]{20}/],
  // Keys, signing secrets, their hashes and the JWT secrets of the tests are all 64 of these; ids have 32 at most, with dashes.
  ["a secret in hex, or its hash", /[0-9a-f]{40}/i],
  // `eventOf` in deliveries.ts puts it into every event. Quotes may be escaped.
  ["the data of an event", /commit\W{1,20}c0ffee/],
  ["the query of a URL", /https?:\/\/[^\s"\\]*\?/],
];

/**
 * What a text gives away.
 * @param known secrets of this run, word for word
 */
export function leaksIn(text: string, known: string[] = []): string[] {
  const isKnown = known.some((secret) => secret !== "" && text.includes(secret));
  const found = secrets.filter(([, pattern]) => pattern.test(text)).map(([what]) => what);
  return isKnown ? [...found, "a secret of this run"] : found;
}
