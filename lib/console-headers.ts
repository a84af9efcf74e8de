/*
 * HTTP headers of the console's page and of the API page beside it, for CloudFront and for a local run. Data only.
 *
 * The page displays text of other users (names, URLs, responses of receivers) and holds a credential. Therefore it runs
 * only its own script and connects only to the API.
 */

/**
 * Returns the Content-Security-Policy of the page.
 * @param apiUrl address of the API without a trailing slash; empty = the origin of the page
 */
export function contentSecurityPolicy(apiUrl: string): string {
  const rules = {
    "default-src": "'none'",
    "script-src": "'self'",
    "style-src": "'self'",
    "font-src": "'self'",
    // A path with a trailing slash matches everything below it; without one it matches only itself.
    "connect-src": apiUrl === "" ? "'self'" : `'self' ${apiUrl}/`,
    "img-src": "'self' data:",
    "base-uri": "'none'",
    "form-action": "'none'",
    "frame-ancestors": "'none'",
    // Rejects assignments of text to innerHTML and similar sinks, in case the page's code has a bug.
    "require-trusted-types-for": "'script'",
    "trusted-types": "'none'",
  };
  return Object.entries(rules)
    .map(([name, sources]) => `${name} ${sources}`)
    .join("; ");
}

/** The API page: docs/openapi.json, rendered. */
export const API_PAGE = "docs.html";

/** The Content-Security-Policy of the API page: what its own `meta` element (contract/page.ts) cannot contain. */
export const apiPagePolicy = "frame-ancestors 'none'";

export const pageHeaders = {
  "X-Content-Type-Options": "nosniff",
  "X-Frame-Options": "DENY",
  "Referrer-Policy": "no-referrer",
  "Cross-Origin-Opener-Policy": "same-origin",
  "Cross-Origin-Resource-Policy": "same-origin",
  "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
};

/**
 * The browser revalidates each file at every load, because file names have no version. Unchanged files are not sent
 * again.
 */
export const pageCacheControl = "no-cache";

/** Media types of the page's files by file extension. */
export const pageTypes: Record<string, string> = {
  html: "text/html; charset=utf-8",
  js: "text/javascript; charset=utf-8",
  css: "text/css; charset=utf-8",
  svg: "image/svg+xml",
  woff2: "font/woff2",
  txt: "text/plain; charset=utf-8",
  json: "application/json",
};
