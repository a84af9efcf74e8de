/** A header of an earlier service, which deliveries carry with the value of `X-Service-Signature`. */
export interface LegacySignatureHeader {
  name: string;
  /** The first moment without it: a date, or a time with a time zone, in ISO 8601. */
  until: string;
}

/** https://www.rfc-editor.org/rfc/rfc9110#section-5.6.2 */
const TOKEN = /^[\w!#$%&'*+.^`|~-]{1,100}$/;
/** The headers of deliveries, of HTTP, and those that proxies and clients set. */
const TAKEN =
  /^(x-service-.*|webhook-.*|accept(-.*)?|authorization|cache-control|connection|content-.*|cookie|date|expect|forwarded|from|host|if-.*|keep-alive|max-forwards|origin|pragma|proxy-.*|range|referer|sec-.*|te|trailer|transfer-encoding|upgrade|user-agent|via|x-forwarded-.*)$/i;
const ISO_8601 = /^(\d{4}-\d\d-\d\d)(T\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d))?$/;

export const legacySignatureHeaderRule =
  "must have a name of a header such as X-Acme-Signature, none of HTTP or of this service, and an until that is a date or a time with a time zone, for example 2027-01-31 or 2027-01-31T09:30:00Z";

export function isLegacySignatureHeader(value: unknown): value is LegacySignatureHeader {
  const { name, until }: { name?: unknown; until?: unknown } = Object(value);
  return (
    typeof name === "string" && TOKEN.test(name) && !TAKEN.test(name) && typeof until === "string" && isUntil(until)
  );
}

function isUntil(text: string): boolean {
  const [, day = ""] = ISO_8601.exec(text) ?? [];
  if (Number.isNaN(Date.parse(day)) || Number.isNaN(Date.parse(text))) return false;
  // `Date.parse` reads February 30 as March 2.
  return new Date(day).toISOString().startsWith(day);
}
