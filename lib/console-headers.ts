/*
 * Headers of the console's page, wherever it is served from: CloudFront or a local run. Data only. What the page shows was
 * written by others (names, URLs, answers of receivers), and what it holds is a credential: so it runs its own script and
 * no other, and speaks to the API and to nobody else.
 */

/** @param apiUrl without a trailing slash; empty = where the page is */
export function contentSecurityPolicy(apiUrl: string): string {
  const rules = {
    "default-src": "'none'",
    "script-src": "'self'",
    "style-src": "'self'",
    // With a slash at its end a path stands for all below it; without, for itself alone.
    "connect-src": apiUrl === "" ? "'self'" : `'self' ${apiUrl}/`,
    "img-src": "'self' data:",
    "base-uri": "'none'",
    "form-action": "'none'",
    "frame-ancestors": "'none'",
    // Text never becomes markup or script, not even by a mistake of the page's own code.
    "require-trusted-types-for": "'script'",
    "trusted-types": "'none'",
  };
  return Object.entries(rules)
    .map(([name, sources]) => `${name} ${sources}`)
    .join("; ");
}

export const pageHeaders = {
  "X-Content-Type-Options": "nosniff",
  "X-Frame-Options": "DENY",
  "Referrer-Policy": "no-referrer",
  "Cross-Origin-Opener-Policy": "same-origin",
  "Cross-Origin-Resource-Policy": "same-origin",
  "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
};

/** A new version is there at the next load. The files have no version in their names; an unchanged one is not sent again. */
export const pageCacheControl = "no-cache";

/** Media types of the page's files, by the end of their name. */
export const pageTypes: Record<string, string> = {
  html: "text/html; charset=utf-8",
  js: "text/javascript; charset=utf-8",
  css: "text/css; charset=utf-8",
  svg: "image/svg+xml",
  json: "application/json",
};
