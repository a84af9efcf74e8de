import { type FailureCode, NO_IPV4, NOT_CONNECTED, PORT_BLOCKED } from "../../foundation/events/failure-code.ts";
import { formatLabels, type ProductFormat } from "../formats/format-of-url.ts";
import { BOT_CHECK, CSRF, IN_HANDSHAKE, SIGN_IN, SWITCHED } from "./failure-cause.ts";

/** The fields of an attempt that a hint depends on. */
interface FailedAttempt {
  at?: string | undefined;
  /** Absent for a success. */
  error_code?: FailureCode | undefined;
  status_code?: number | undefined;
  /** What `causeOf`, `redirectTarget` or `answerDetail` returned. */
  detail?: string | undefined;
}

/**
 * Returns one sentence on how the owner can fix the receiver after a failed attempt.
 * @param secretRotatedAt time of the last rotation of the webhook's secret; absent = it does not matter
 * @returns undefined for a success
 */
export function failureHint(
  { at, error_code, status_code, detail }: FailedAttempt,
  secretRotatedAt?: string,
): string | undefined {
  switch (error_code) {
    case undefined:
      return undefined;
    case "timeout":
      return detail === NOT_CONNECTED ? noConnectionHint : timeoutHint(status_code);
    case "dns_error":
      return dnsHint(detail);
    case "connection_refused":
      return detail === NO_IPV4
        ? "The host of the URL has only IPv6 addresses, which the service cannot reach: add an A record with an IPv4 address."
        : "Nothing accepts connections at the host and port of the URL: check that the receiver is running and that no firewall rejects the connection.";
    case "connection_reset":
      return detail === IN_HANDSHAKE
        ? "The connection was closed during the TLS handshake: check that the receiver has a certificate for the host of the URL and supports TLS 1.2 or 1.3."
        : "The connection was closed before the response was complete: check for a crash or a proxy timeout at that time.";
    case "tls_error":
      return tlsHint(detail);
    case "address_blocked":
      return detail === PORT_BLOCKED
        ? "The port of the URL is that of a service other than a web server: use 443 or another port."
        : "The host resolves to an address that is not public: use a host with public addresses only.";
    case "invalid_response":
      return invalidHint(status_code, detail);
    case "http_status":
      if (detail === undefined && /^40[13]$/.test(String(status_code)) && isSoonAfter(at, secretRotatedAt)) {
        return `The receiver returned ${status_code}, and the secret was rotated at ${secretRotatedAt}: ${rotationFix}`;
      }
      return statusHint(status_code ?? 0, detail);
  }
}

/** How long after a rotation it explains a rejection: a receiver with the previous secret fails with its first delivery. */
const ROTATION_EXPLAINS_MS = 24 * 3_600_000;

function isSoonAfter(at = "", rotatedAt = ""): boolean {
  const sinceMs = Date.parse(at) - Date.parse(rotatedAt);
  return sinceMs >= 0 && sinceMs < ROTATION_EXPLAINS_MS;
}

const rotationFix =
  "store the new secret. Until then, only webhook-signature and X-Service-Signature-Previous match the previous one; X-Service-Signature does not.";

const noConnectionHint =
  "No connection was established: check that the host of the URL is reachable from the internet and that no firewall drops its packets.";

const timeoutHint = (status?: number): string =>
  status === undefined
    ? "Respond within 15 seconds: accept the delivery first and do the work afterwards."
    : `The response began with ${status} and did not end within 15 seconds: send Content-Length, or close the connection after the body.`;

function dnsHint(code = ""): string {
  if (/^(ETIMEOUT|EAI_AGAIN)$/.test(code)) {
    return "The host name of the URL did not resolve within 3 seconds: check that the name servers of its domain respond.";
  }
  if (code === "ENODATA") return "The host name of the URL has no address: add an A record with an IPv4 address.";
  if (/^(ESERVFAIL|EREFUSED)$/.test(code))
    return `The name servers of the host's domain failed (${code}): check its zone.`;
  return "The host name of the URL does not resolve: check its spelling and its DNS records.";
}

function tlsHint(cause = "unknown cause"): string {
  const fix = tlsFixes.find(({ causes }) => causes.test(cause))?.fix ?? "check the receiver's TLS configuration.";
  return `The TLS connection failed (${cause}): ${fix}`;
}

const tlsFixes = [
  { causes: /EXPIRED/, fix: "renew the certificate." },
  { causes: /NOT_YET_VALID/, fix: "check the clock of the machine that issued the certificate." },
  { causes: /SELF_SIGNED/, fix: "use a certificate from a public authority." },
  { causes: /UNABLE_TO|UNTRUSTED/, fix: "send the full certificate chain, intermediate certificates included." },
  { causes: /ALTNAME|HOSTNAME/, fix: "use a certificate that names the host of the URL." },
  { causes: /PURPOSE|INVALID_CA/, fix: "use a certificate for servers (serverAuth) that an authority has issued." },
  { causes: /too weak/, fix: "use a certificate with at least 2,048 bits (RSA) and a SHA-256 signature." },
  { causes: /wrong.version|packet.length|http.request/i, fix: "the port does not serve TLS, use that of https." },
  { causes: /protocol.version|unsupported.protocol/i, fix: "enable TLS 1.2 or 1.3." },
  { causes: /certificate.required/i, fix: "require no client certificate, which deliveries do not have." },
  { causes: /handshake.failure/i, fix: "require no client certificate, and allow usual ciphers of TLS 1.2." },
  { causes: /unrecognized.name/i, fix: "configure the host of the URL on the receiver." },
];

function invalidHint(status?: number, reason?: string): string {
  if (reason === SWITCHED) {
    return "The receiver switched to another protocol (101): return 2xx to confirm a delivery, without an upgrade.";
  }
  if (status !== undefined) {
    return `The response began with ${status}, and its body is not valid HTTP/1.1${inBrackets(reason)}: check the lengths that the receiver writes for it.`;
  }
  return `The response is not valid HTTP/1.1${inBrackets(reason)}: ${invalidFix(reason)}`;
}

const inBrackets = (reason?: string): string => (reason === undefined ? "" : ` (${reason})`);

function invalidFix(reason?: string): string {
  if (reason === undefined) return "check that the port serves HTTP and that the headers are not too large.";
  if (/overflow/i.test(reason)) return "send at most 16 KB of headers.";
  const isOther = /^Expected HTTP|Invalid HTTP version/.test(reason);
  return isOther ? "check that the port serves HTTP/1.1." : "check the program that writes its status and headers.";
}

function statusHint(status: number, detail?: string): string {
  if (status < 100)
    return `The receiver returned ${String(status).padStart(3, "0")}, which is not a status: return 2xx.`;
  if (status >= 300 && status < 400) return redirectHint(status, detail);
  const product = productHint(status, detail);
  if (product !== undefined) return product;
  const fix = detail === undefined ? undefined : (answerFixes[detail] ?? credentialsFix(status, detail));
  return `The receiver returned ${status}: ${fix ?? statusFixes[status] ?? generalFix(status)}`;
}

/** Of a host or a path that asks people to sign in. */
const SIGN_IN_URL =
  /^https?:\/\/(accounts|login|sso|[\w-]+\.cloudflareaccess)\.|[/_-](log-?_?in|sign-?_?in|sso|saml2?|oauth2?|authorize|cdn-cgi\/access)([/?.]|$)/i;
/** Only these are about the URL itself, for any method: RFC 9110, section 15.4. */
const MOVED = [301, 307, 308];

function redirectHint(status: number, target?: string): string {
  if (target === undefined) return `The receiver returned ${status}: return 2xx instead, redirects are not followed.`;
  if (SIGN_IN_URL.test(target)) {
    return `The receiver returned ${status} to a sign-in page at ${new URL(target).host}: exempt the path of the URL from the sign-in, and verify the signature there.`;
  }
  if (MOVED.includes(status)) return `Redirects are not followed: register ${target} instead.`;
  return `The receiver returned ${status} to ${target}: return 2xx to confirm a delivery, redirects are not followed.`;
}

/** What the codes of products mean, and what to do. */
const productFixes: Record<string, string> = {
  "slack:no_text": "found no message: set the format of the webhook to slack.",
  "slack:missing_text_or_fallback_or_attachments": "found no message: set the format of the webhook to slack.",
  "slack:invalid_payload":
    "did not find a message of its form: set the format of the webhook to slack if it is another, and see the response.",
  "slack:channel_not_found": "does not find the channel: create a new incoming webhook, and set its URL.",
  "slack:channel_is_archived": "has archived the channel: restore it, or create an incoming webhook for another one.",
  "slack:no_team": "does not know the workspace: copy the whole URL of the incoming webhook again.",
  "slack:team_disabled": "has disabled the workspace: use an incoming webhook of another one.",
  "slack:invalid_token": "does not know this URL: copy the whole URL of the incoming webhook again.",
  "slack:action_prohibited": "forbids the message: an admin of the workspace must allow it.",
  "slack:posting_to_general_channel_denied":
    "forbids messages to this channel: an admin of the workspace must allow them.",
  "discord:50006": "found an empty message: set the format of the webhook to discord.",
  "discord:50035":
    "did not find a message of its form: set the format of the webhook to discord if it is another, and see the response.",
  "discord:50027": "does not know the token in the URL: copy the whole URL of its webhook again.",
  "discord:10015": "has deleted its webhook: create a new one there, and set its URL.",
};
const LIMITED = "limits messages; the delivery waits as long as it asks for.";
const GONE_IN_SLACK = "has removed the incoming webhook: create a new one, and set its URL.";
for (const code of ["no_service", "no_service_id", "no_active_hooks", "user_not_found"]) {
  productFixes[`slack:${code}`] = GONE_IN_SLACK;
}

/** By product and status, when it gives no code that is known. */
const productStatusFixes: Record<ProductFormat, Record<number, string>> = {
  slack: {
    400: "did not accept the message: set the format of the webhook to slack if it is another, and see the response.",
    404: GONE_IN_SLACK,
  },
  discord: {
    400: "did not accept the message: set the format of the webhook to discord if it is another, and see the response.",
    401: "does not know the token in the URL: copy the whole URL of its webhook again.",
    404: "has deleted its webhook: create a new one there, and set its URL.",
  },
  teams: {
    400: "did not accept the message: set the format of the webhook to teams if it is another, and check the trigger of the workflow.",
    401: "wants a sign-in: let anyone trigger the workflow, and copy the whole URL again.",
    403: "wants a sign-in: let anyone trigger the workflow, and copy the whole URL again.",
    404: "has deleted or disabled the workflow: enable it, or create a new one and set its URL.",
  },
  "google-chat": {
    400: "did not accept the message: set the format of the webhook to google-chat if it is another, and see the response.",
    401: "does not know key and token in the URL: copy the whole URL of its webhook again.",
    403: "does not allow the message: copy the whole URL of its webhook again, and check who may post in the space.",
    404: "has deleted the space or its webhook: create a new one, and set its URL.",
  },
  "github-dispatch": {
    401: "wants a token: add the header Authorization with Bearer and a token that may write the contents of the repository.",
    403: "does not allow it: give the token of the Authorization header write access to the contents of the repository.",
    404: "does not show the repository: check the URL, and that the token of the Authorization header may write its contents.",
    422: "did not accept the request: set the format of the webhook to github-dispatch if it is another, and see the response.",
  },
};

/** Returns the hint for a product that refused a request; undefined = the detail is none of a product. */
function productHint(status: number, detail = ""): string | undefined {
  const [product = "", code = ""] = detail.split(":");
  const byStatus = productStatusFixes[product as ProductFormat];
  if (byStatus === undefined) return undefined;
  const label = formatLabels[product as ProductFormat];
  if (status < 300) return `${label} returned ${status}, and did not deliver the message (HTTP error ${code}).`;
  const fix = productFixes[detail] ?? byStatus[status] ?? (status === 429 ? LIMITED : undefined);
  const shown = code === "" ? "" : ` (${code})`;
  return `${label} returned ${status}${shown}: ${fix === undefined ? (statusFixes[status] ?? generalFix(status)) : `it ${fix}`}`;
}

const answerFixes: Record<string, string> = {
  [CSRF]:
    "its CSRF protection rejected the request. Exempt the path of the URL from it, and verify the signature there.",
  [SIGN_IN]:
    "a sign-in page answered in place of the receiver. Exempt the path of the URL from the sign-in or deployment protection.",
  [BOT_CHECK]: "a bot check answered in place of the receiver. Exempt the path of the URL from it.",
};

const credentialsFix = (status: number, scheme: string): string | undefined =>
  [401, 403].includes(status)
    ? `it asks for ${scheme} credentials. Verify the signature on this path instead, or add an Authorization header to the webhook.`
    : undefined;

const statusFixes: Record<number, string> = {
  400: "it did not accept the request; see the response for the reason.",
  401: "it did not accept the signature, or wants a credential. Most often it verifies with the secret of another webhook, or a body that was parsed first: verify with this webhook's secret and the body as it arrived, or add an Authorization header to the webhook.",
  403: "it rejected the request: check that it verifies with this webhook's secret and the unchanged body, and that no firewall blocks the request.",
  404: "the path of the URL does not exist on the receiver.",
  405: "the path does not accept POST requests.",
  410: "it has been removed permanently, so the webhook was disabled.",
  413: "it does not accept bodies of this size; raise its limit to 256 KB.",
  415: "it does not accept application/json.",
  422: "it did not accept the body, or its CSRF protection rejected the request; see the response for the reason.",
  429: "it receives too many requests; return Retry-After to slow deliveries down.",
};

const generalFix = (status: number): string =>
  status >= 500 ? "check its log at the time of the attempt." : "return 2xx to confirm a delivery.";
