/*
 * Headers that answers carry, whoever makes them: an endpoint, API Gateway or the local gateway. Data only.
 */

/**
 * On every answer. Each is somebody's own data and some hold secrets: no cache may keep them, no page may frame or sniff
 * them, and no browser may ask for them without TLS.
 * https://cheatsheetseries.owasp.org/cheatsheets/REST_Security_Cheat_Sheet.html#security-headers
 */
export const securityHeaders = {
  "Cache-Control": "no-store",
  "X-Content-Type-Options": "nosniff",
  "X-Frame-Options": "DENY",
  "Strict-Transport-Security": "max-age=63072000",
};

/** What a page of an allowed origin may send and see (https://fetch.spec.whatwg.org/#http-cors-protocol). No cookies: none are used. */
export const cors = {
  allowedMethods: ["GET", "POST", "PATCH", "DELETE"],
  allowedHeaders: ["Authorization", "Content-Type"],
  exposedHeaders: ["x-request-id", "Link", "Retry-After", "WWW-Authenticate"],
  maxAgeSeconds: 7200,
};
