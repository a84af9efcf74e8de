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
const ISO_8601 = /^\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d))?$/;

export const legacyNameRule =
  "must be the name of a header such as X-Acme-Signature, and none of HTTP or of this service";
export const isLegacyName = (name: unknown): name is string =>
  typeof name === "string" && TOKEN.test(name) && !TAKEN.test(name);

export const legacyUntilRule =
  "must be a date or a time with a time zone, for example 2027-01-31 or 2027-01-31T09:30:00Z";
export const isLegacyUntil = (text: unknown): text is string =>
  typeof text === "string" && ISO_8601.test(text) && !Number.isNaN(Date.parse(text));
