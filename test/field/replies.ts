import { brotliCompressSync, gzipSync } from "node:zlib";
import type { FailureCode } from "../../functions/foundation/events/failure-code.ts";

/*
 * What real receivers answer, as bytes, and what the service and `svc listen --forward` report about it. Each row has the
 * public report or the standard that it is from. A new report is a new row.
 */

type Bytes = string | Buffer;

/** What a receiver writes on a connection: all at once, or in parts with a pause between them. */
export interface Reply {
  parts: Bytes[];
  /** What follows: it leaves the connection open (default), closes or resets it. */
  end?: "closes" | "resets";
}

export type Row = [
  source: string,
  name: string,
  reply: Bytes | Reply,
  /** The status, `-` for none, and the error code of a failure. */
  result: `${number | "-"}` | `${number | "-"} ${FailureCode}`,
  /** A part of the hint. Absent for a success. */
  hint?: string,
  excerpt?: string,
];

const closes = (...parts: Bytes[]): Reply => ({ parts, end: "closes" });
const resets = (...parts: Bytes[]): Reply => ({ parts, end: "resets" });
const inParts = (...parts: Bytes[]): Reply => ({ parts });

/** A response of this status, with these headers and the length of its body. */
function reply(status: number | string, headers = "", body: Bytes = ""): Buffer {
  const lines = headers.split(" | ").map((line) => (line === "" ? "" : `${line}\r\n`));
  const head = `HTTP/1.1 ${status} X\r\n${lines.join("")}Content-Length: ${Buffer.byteLength(body)}\r\n\r\n`;
  return Buffer.concat([Buffer.from(head), Buffer.from(body)]);
}
const page = (status: number, body: string, headers = "Server: x") =>
  reply(status, `Content-Type: text/html; charset=utf-8 | ${headers}`, body);
const ok = (line: string, body = "OK") => `HTTP/1.1 200 OK\r\n${line}\r\n\r\n${body}`;

const HTTP = "RFC 9112";

/** Complete responses: their status decides, whatever follows them. */
// biome-ignore format: a report is one line
const complete: Row[] = [
  ["tableau/webhooks-docs#12", "a 204 with a body", "HTTP/1.1 204 N\r\nContent-Length: 2\r\n\r\nOK", "204"],
  ["top-gg/issues#781", "a 204 whose body follows", inParts("HTTP/1.1 204 N\r\nContent-Length: 2\r\n\r\n", "OK"), "204"],
  ["blynk-server#942", "a 204 with chunks", "HTTP/1.1 204 N\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nOK\r\n0\r\n\r\n", "204"],
  ["Python http.server", "a 204 of HTTP/1.0 with a body", closes("HTTP/1.0 204 No Content\r\n\r\nok"), "204"],
  ["php -S", "a 204 with a body, then closed", closes("HTTP/1.1 204 N\r\nConnection: close\r\n\r\nok"), "204"],
  ["nodejs/node#37676", "a length in characters", ok("Content-Length: 7", "déployé"), "200", undefined, "déploy"],
  ["nodejs/node#37783", "more than its length, then closed", closes(ok("Content-Length: 2\r\nConnection: close", "OK done")), "200", undefined, "OK"],
  ["nodejs/http-parser#47", "a line break after the body", ok("Content-Length: 2", "OK\r\n"), "200", undefined, "OK"],
  ["lago-api#245", "an empty 204", "HTTP/1.1 204 No Content\r\n\r\n", "204"],
  [HTTP, "bytes after the last chunk", ok("Transfer-Encoding: chunked", "2\r\nOK\r\n0\r\n\r\nX"), "200"],
  [HTTP, "a failure with more than its length", "HTTP/1.1 400 B\r\nContent-Length: 3\r\n\r\nbad!", "400 http_status", "see the response", "bad"],
  [HTTP, "HTTP/1.0 without a length", closes("HTTP/1.0 200 OK\r\n\r\nOK"), "200", undefined, "OK"],
  [HTTP, "no reason phrase", "HTTP/1.1 200\r\nContent-Length: 2\r\n\r\nOK", "200"],
  [HTTP, "a line break before the status", `\r\n${ok("Content-Length: 2")}`, "200"],
  [HTTP, "interim responses before it", `HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n${ok("Content-Length: 2")}`, "200"],
  [HTTP, "a chunk extension and a trailer", ok("Transfer-Encoding: chunked", "2;a=b\r\nOK\r\n0\r\nX: b\r\n\r\n"), "200"],
  [HTTP, "a reset after the complete body", resets(ok("Content-Length: 2")), "200"],
  ["Apache httpd", "an offer of another protocol", ok("Upgrade: h2,h2c\r\nConnection: Upgrade\r\nContent-Length: 2"), "200"],
  ["haproxy/haproxy#1301", "a coding besides chunks", ok("Transfer-Encoding: gzip, chunked", "2\r\nOK\r\n0\r\n\r\n"), "200"],
  ["bigcommerce/dev-docs#2114", "ten headers of 1 KB", ok(`${Array.from({ length: 10 }, (_, n) => `X-${n}: ${"a".repeat(1_000)}`).join("\r\n")}\r\nContent-Length: 2`), "200"],
  ["screwdriver-cd/screwdriver#3225", "a 204 after an error of its own", "HTTP/1.1 204 N\r\nX-Error: parse\r\n\r\n", "204"],
  ["RFC 9110, section 15.3.6", "a 205 with a body", "HTTP/1.1 205 R\r\nContent-Length: 2\r\n\r\nOK", "205"],
];

/** Responses that are not HTTP, or not complete. */
// biome-ignore format: a report is one line
const broken: Row[] = [
  [HTTP, "HTTP/0.9", closes("OK"), "- invalid_response", "(Expected HTTP/, RTSP/ or ICE/): check that the port serves"],
  ["CGI", "a Status header first", closes("Status: 200 OK\r\n\r\nOK"), "- invalid_response", "check that the port serves"],
  [HTTP, "a status of four digits", closes("HTTP/1.1 2000 X\r\n\r\n"), "- invalid_response", "its status and headers"],
  [HTTP, "two spaces before the status", closes("HTTP/1.1  200 OK\r\n\r\n"), "- invalid_response", "not valid HTTP/1.1"],
  [HTTP, "a control character in a header", closes(ok("X: a\x01b")), "- invalid_response", "its status and headers"],
  [HTTP, "a NUL in a header", closes(ok("X: a\x00b")), "- invalid_response", "its status and headers"],
  [HTTP, "a header without a name", closes(ok(": x")), "- invalid_response", "(Invalid header token)"],
  [HTTP, "a space before the colon", closes(ok("X : b")), "- invalid_response", "(Invalid header token)"],
  [HTTP, "lines without CR", closes("HTTP/1.1 200 OK\nX: y\n\nOK"), "- invalid_response", "its status and headers"],
  [HTTP, "a length and chunks", closes(ok("Content-Length: 2\r\nTransfer-Encoding: chunked", "2\r\nOK\r\n0\r\n\r\n")), "- invalid_response", "(Transfer-Encoding can't be present with Content-Length)"],
  ["lewisakura/webhook-proxy#2", "a 429 with chunks and a length", closes("HTTP/1.1 429 T\r\nTransfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\n2\r\nOK\r\n0\r\n\r\n"), "- invalid_response", "(Content-Length can't be present with Transfer-Encoding)"],
  ["creationix/http-parser-js#73", "a page without status and headers", closes("<html>a</html>\r\n0\r\n\r\n3dd\r\n<a>"), "- invalid_response", "check that the port serves"],
  ["haproxy/haproxy#1301", "an unknown coding", closes(ok("Transfer-Encoding: cow")), "200", undefined, "OK"],
  ["Node's limit", "17 KB of headers", closes(ok(`X: ${"a".repeat(17_000)}`)), "- invalid_response", "at most 16 KB"],
  [HTTP, "a chunk size that is none", ok("Transfer-Encoding: chunked", "zz\r\n"), "200 invalid_response", "began with 200"],
  ["RFC 9110, section 15.2.2", "a 101", "HTTP/1.1 101 S\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n\r\n", "- invalid_response", "another protocol (101)"],
  [HTTP, "the status 000", reply("000"), "0 http_status", "returned 000, which is not a status"],
  [HTTP, "the status 600", reply(600), "600 http_status", "returned 600"],
  [HTTP, "a body shorter than its length", closes(ok("Content-Length: 5")), "200 connection_reset", "before the response was complete"],
  [HTTP, "no last chunk", closes(ok("Transfer-Encoding: chunked", "2\r\nOK\r\n")), "200 connection_reset", "was complete"],
  ["nc -l", "no length and no end", ok("X: y"), "200 timeout", "began with 200 and did not end within 15 seconds"],
  ["nc -l", "no response", inParts(), "- timeout", "Respond within 15 seconds"],
];

const GZIPPED = gzipSync('{"error":"bad signature"}');
const BROTLI = brotliCompressSync("bad signature, bad signature");

/** Bodies with the reason of a failure. */
// biome-ignore format: a report is one line
const reasons: Row[] = [
  ["svix#550", "a compressed reason", reply(400, "Content-Encoding: gzip", GZIPPED), "400 http_status", "see the response", `(compressed with gzip, ${GZIPPED.length} bytes)`],
  ["svix#550", "a reason in brotli", reply(400, "Content-Encoding: br", BROTLI), "400 http_status", "see the response", `(compressed with br, ${BROTLI.length} bytes)`],
  ["RFC 9110, section 8.4.1", "a coding that is a charset", reply(400, "Content-Encoding: utf-8", "né"), "400 http_status", "see the response", "né"],
  ["isaacs/github#918", "a reason in Latin-1", reply(400, "Content-Type: text/plain; charset=iso-8859-1", Buffer.from("ungültig für é", "latin1")), "400 http_status", "see the response", "ungültig für é"],
  ["WHATWG Encoding", "a reason in UTF-16", reply(400, "Content-Type: text/plain; charset=utf-16le", Buffer.from("ungültig", "utf16le")), "400 http_status", "see the response", "ungültig"],
  ["WHATWG Encoding", "a charset that does not exist", reply(400, "Content-Type: text/plain; charset=none", "né"), "400 http_status", "see the response", "né"],
  ["ericferon/glpi-webhook#11", "Mattermost, which wants another body", reply(400, "Content-Type: application/json", '{"id":"parse_data","message":"Unable to parse incoming data."}'), "400 http_status", "see the response", '{"id":"parse_data","message":"Unable to parse incoming data."}'],
  ["orphans/git-deploy-laravel#5", "Laravel, which wants a form", reply(500, "", "Web hook data does not look valid"), "500 http_status", "check its log", "Web hook data does not look valid"],
  ["api.slack.com/messaging/webhooks", "Slack, which wants another body", page(400, "no_text"), "400 http_status", "see the response", "no_text"],
];

const to = (status: number, location: Bytes): Buffer =>
  Buffer.concat([
    Buffer.from(`HTTP/1.1 ${status} X\r\nContent-Length: 0\r\nLocation: `),
    Buffer.from(location),
    Buffer.from("\r\n\r\n"),
  ]);

/** What answers in place of the receiver, and where it redirects to. */
// biome-ignore format: a report is one line
const inFront: Row[] = [
  ["keephq/keep#5521", "a redirect to Cloudflare Access", to(302, "https://team.cloudflareaccess.com/cdn-cgi/access/login/a?kid=b"), "302 http_status", "to a sign-in page at team.cloudflareaccess.com: exempt"],
  ["cloudflare/moltworker#132", "a redirect to Google", to(302, "https://accounts.google.com/o/oauth2/auth?client_id=1"), "302 http_status", "sign-in page at accounts.google.com"],
  ["SwitchBotAPI#178", "a redirect to Devise", to(302, "https://app.example.com/users/sign_in"), "302 http_status", "sign-in page at app.example.com"],
  ["terraform-aws-atlantis#223", "a permanent redirect to a sign-in", to(308, "https://app.example.com/login?next=/hook"), "308 http_status", "sign-in page at app.example.com"],
  ["RFC 9110, section 15.4.4", "a 303 after a form", to(303, "https://app.example.com/thanks"), "303 http_status", "returned 303 to https://app.example.com/thanks: return 2xx"],
  ["RFC 9110, section 15.4.9", "a 308 to another path", to(308, "https://example.com/hook/"), "308 http_status", "register https://example.com/hook/ instead"],
  ["RFC 9110, section 15.4.9", "a 308 of a receiver for sign-ins", to(308, "https://auth.example.com/sso-events/"), "308 http_status", "register https://auth.example.com/sso-events/ instead"],
  ["RFC 9110, section 15.4.2", "a 301 with a fragment", to(301, "https://example.com/hook#a"), "301 http_status", "register https://example.com/hook instead"],
  ["RFC 3987", "a Location in UTF-8", to(301, "https://example.com/café"), "301 http_status", "https://example.com/caf%C3%A9 instead"],
  ["RFC 3987", "a Location in Latin-1", to(301, Buffer.from("https://example.com/café", "latin1")), "301 http_status", "https://example.com/caf%C3%A9 instead"],
  ["RFC 9110, section 10.2.2", "a script as Location", to(302, "javascript:alert(1)"), "302 http_status", "redirects are not followed"],
  ["hookdeck/outpost", "a 304", "HTTP/1.1 304 Not Modified\r\n\r\n", "304 http_status", "redirects are not followed"],
  ["vercel/vercel#12907", "deployment protection", page(401, "<!doctype html><title>Authentication Required</title>"), "401 http_status", "a sign-in page answered in place of the receiver"],
  ["vm0-ai/vm0#20754", "a form with a password", page(403, '<form><input type="password"></form>'), "403 http_status", "a sign-in page answered"],
  ["pallets/flask", "a 401 of the receiver itself", page(401, "<title>401 Unauthorized</title><p>wrong (e.g. a bad password)"), "401 http_status", "did not accept the signature"],
  ["Cloudflare", "a bot check", page(403, "<title>Just a moment...</title>", "cf-mitigated: challenge"), "403 http_status", "a bot check answered"],
  ["django-anymail#19", "CSRF protection of Django", page(403, "CSRF verification failed. Request aborted."), "403 http_status", "its CSRF protection"],
  ["discourse#16982", "CSRF protection of Rails", page(422, "<title>The change you wanted was rejected (422)</title>"), "422 http_status", "its CSRF protection rejected the request. Exempt"],
  ["laravel.com/docs/csrf", "CSRF protection of Laravel", page(419, "<title>Page Expired</title>"), "419 http_status", "its CSRF protection"],
  ["wtforms/flask-wtf", "CSRF protection of Flask", page(400, "<p>The CSRF token is missing.</p>"), "400 http_status", "its CSRF protection"],
  ["shopify-app-template-ruby#115", "a 422 without a body", reply(422), "422 http_status", "or its CSRF protection"],
  ["gitlabhq#1184", "Basic auth", reply(401, 'WWW-Authenticate: Basic realm="a"'), "401 http_status", "asks for Basic credentials"],
  ["gitea#20267", "a token of its own", reply(401, "WWW-Authenticate: Token"), "401 http_status", "asks for Token credentials"],
  ["RFC 6750", "a bearer token with a 403", reply(403, 'WWW-Authenticate: Bearer error="insufficient_scope"'), "403 http_status", "asks for Bearer credentials"],
  ["RFC 9110, section 11.6.1", "a challenge that is none", reply(401, "WWW-Authenticate: <script>"), "401 http_status", "did not accept the signature"],
  ["RFC 9110, section 11.6.1", "a scheme that is unknown", reply(401, "WWW-Authenticate: Ignore-All realm=x"), "401 http_status", "asks for other credentials"],
  ["nginx", "a bad gateway", page(502, "<title>502 Bad Gateway</title>"), "502 http_status", "check its log"],
];

export const replies: Row[] = [...complete, ...broken, ...reasons, ...inFront];

const NO_BODY = "HTTP/1.1 204 N\r\nContent-Length: 2\r\n\r\n";
const LATE_408 = "HTTP/1.1 408 R\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";

/** What a receiver writes on a connection that is idle: it is never the response to the next request (oven-sh/bun#42128). */
export type Idle = [source: string, name: string, reply: string, late: string, end?: Reply["end"]];
export const idle: Idle[] = [
  ["openshift/release#378", "a 408 and the end", ok("Content-Length: 2"), LATE_408, "closes"],
  ["t2bot/matrix-media-repo#174", "a 408", ok("Content-Length: 2"), LATE_408],
  ["oven-sh/bun#42128", "another 200", ok("Content-Length: 2"), ok("Content-Length: 2")],
  ["top-gg/issues#781", "the body of a 204", NO_BODY, "OK"],
  ["nodejs/http-parser#47", "a line break", ok("Content-Length: 2"), "\n"],
];

type Failed = { code?: string; message?: string; syscall?: string; address?: string; errors?: { address: string }[] };

const SSL = (reason: string) => ({ code: "EPROTO", message: `error:0A00:SSL routines:ssl_x:${reason}:ssl/x.c:1:\n` });

/** Errors of Node's and OpenSSL's that need certificates or networks which a test does not have. */
// biome-ignore format: a report is one line
export const errors: [source: string, error: Failed, phase: "connecting" | "handshake", code: FailureCode, hint: string][] = [
  ["nodejs/node#58319", { code: "UNSPECIFIED", message: "EE certificate key too weak" }, "handshake", "tls_error", "(EE certificate key too weak): use a certificate with at least 2,048 bits"],
  ["nodejs/node#46515", { code: "UNSPECIFIED", message: "CA signature digest algorithm too weak" }, "handshake", "tls_error", "SHA-256"],
  ["acme2certifier#6", { code: "INVALID_PURPOSE" }, "handshake", "tls_error", "(INVALID_PURPOSE): use a certificate for servers"],
  ["telegram-bot-api#746", { code: "INVALID_CA" }, "handshake", "tls_error", "that an authority has issued"],
  ["RFC 5280", { code: "PATH_LENGTH_EXCEEDED" }, "handshake", "tls_error", "(PATH_LENGTH_EXCEEDED)"],
  ["RFC 5280", { code: "CERT_NOT_YET_VALID" }, "handshake", "tls_error", "check the clock"],
  ["openssl", SSL("tlsv1 alert protocol version"), "handshake", "tls_error", "enable TLS 1.2 or 1.3"],
  ["openssl", SSL("sslv3 alert handshake failure"), "handshake", "tls_error", "allow usual ciphers"],
  ["openssl", { code: "ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED" }, "handshake", "tls_error", "require no client certificate"],
  ["golang/go#63117", SSL("tlsv1 unrecognized name"), "handshake", "tls_error", "configure the host of the URL"],
  ["aws-lambda-python-runtime-interface-client#49", { code: "EAFNOSUPPORT", address: "2001:db8::1" }, "connecting", "connection_refused", "has only IPv6 addresses"],
  ["webhook.site#23", { code: "ENETUNREACH", errors: [{ address: "2001:db8::1" }, { address: "2001:db8::2" }] }, "connecting", "connection_refused", "add an A record"],
  ["connect(2)", { code: "ENETUNREACH", errors: [{ address: "192.0.2.1" }, { address: "2001:db8::1" }] }, "connecting", "connection_refused", "Nothing accepts connections"],
  ["connect(2)", { code: "EHOSTDOWN", address: "192.0.2.1" }, "connecting", "connection_refused", "Nothing accepts connections"],
  ["getaddrinfo(3)", { code: "EAI_AGAIN", syscall: "getaddrinfo" }, "connecting", "dns_error", "did not resolve within 3 seconds"],
];
