import { type FailureCode, NOT_CONNECTED, PORT_BLOCKED } from "../../foundation/events/failure-code.ts";
import { addSeconds } from "../../foundation/platform/time.ts";
import { MAX_OVERLAP_SECONDS } from "../../foundation/schema/input.ts";

/** The fields of an attempt that a hint depends on. */
interface FailedAttempt {
  at?: string | undefined;
  /** Absent for a success. */
  error_code?: FailureCode | undefined;
  status_code?: number | undefined;
  /** The target of a redirect, the scheme of the credentials that a 401 asks for, the cause of a TLS or DNS failure, `NOT_CONNECTED` or `PORT_BLOCKED`. */
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
      return detail === NOT_CONNECTED
        ? noConnectionHint
        : "Respond within 15 seconds: accept the delivery first and do the work afterwards.";
    case "dns_error":
      return detail === "ETIMEOUT"
        ? noDnsResponseHint
        : "The host name of the URL does not resolve: check its spelling and its DNS records.";
    case "connection_refused":
      return "Nothing accepts connections at the host and port of the URL: check that the receiver is running and that no firewall rejects the connection.";
    case "connection_reset":
      return "The connection was closed before the response was complete: check for a crash or a proxy timeout at that time.";
    case "tls_error":
      return tlsHint(detail);
    case "address_blocked":
      return detail === PORT_BLOCKED
        ? "The port of the URL is that of a service other than a web server: use 443 or another port."
        : "The host resolves to an address that is not public: use a host with public addresses only.";
    case "invalid_response":
      return "The response is not valid HTTP/1.1: check that the port serves HTTP and that the headers are not too large.";
    case "http_status":
      if (detail === undefined && /^40[13]$/.test(String(status_code)) && isSoonAfter(at, secretRotatedAt)) {
        return `The receiver returned ${status_code}, and the secret was rotated at ${secretRotatedAt}: ${rotationFix}`;
      }
      return statusHint(status_code ?? 0, detail);
  }
}

/** Returns whether the overlap of a rotation at this time may not be over. */
function isSoonAfter(at?: string, rotatedAt?: string): boolean {
  if (at === undefined || rotatedAt === undefined) return false;
  return at >= rotatedAt && at < addSeconds(new Date(rotatedAt), MAX_OVERLAP_SECONDS);
}

const rotationFix =
  "store the new secret. Until then, only webhook-signature and X-Service-Signature-Previous match the previous one; X-Service-Signature does not.";

const noConnectionHint =
  "No connection was established: check that the host of the URL is reachable from the internet and that no firewall drops its packets.";
const noDnsResponseHint =
  "The host name of the URL did not resolve within 3 seconds: check that the name servers of its domain respond.";

function tlsHint(cause = "unknown cause"): string {
  const fix = tlsFixes.find(({ causes }) => causes.test(cause))?.fix ?? "check the receiver's TLS configuration.";
  return `The TLS connection failed (${cause}): ${fix}`;
}

const tlsFixes = [
  { causes: /EXPIRED/, fix: "renew the certificate." },
  { causes: /SELF_SIGNED/, fix: "use a certificate from a public authority." },
  { causes: /UNABLE_TO|UNTRUSTED/, fix: "send the full certificate chain, intermediate certificates included." },
  { causes: /ALTNAME|HOSTNAME/, fix: "use a certificate that names the host of the URL." },
];

function statusHint(status: number, detail?: string): string {
  if (status >= 300 && status < 400) {
    if (detail === undefined) return `The receiver returned ${status}: return 2xx instead, redirects are not followed.`;
    return `Redirects are not followed: register ${detail} instead.`;
  }
  if (status === 401 && detail !== undefined) return `The receiver returned 401: ${credentialsFix(detail)}`;
  return `The receiver returned ${status}: ${statusFixes[status] ?? generalFix(status)}`;
}

const credentialsFix = (scheme: string): string =>
  `it asks for ${scheme} credentials, which deliveries do not have. Verify the signature on this path instead.`;

const statusFixes: Record<number, string> = {
  400: "it did not accept the request; see the response for the reason.",
  401: "it did not accept the signature. Most often it verifies with the secret of another webhook, or a body that was parsed first: verify with this webhook's secret and the body as it arrived.",
  403: "it rejected the request: check that it verifies with this webhook's secret and the unchanged body, and that no firewall blocks the request.",
  404: "the path of the URL does not exist on the receiver.",
  405: "the path does not accept POST requests.",
  410: "it has been removed permanently, so the webhook was disabled.",
  413: "it does not accept bodies of this size; raise its limit to 256 KB.",
  415: "it does not accept application/json.",
  429: "it receives too many requests; return Retry-After to slow deliveries down.",
};

const generalFix = (status: number): string =>
  status >= 500 ? "check its log at the time of the attempt." : "return 2xx to confirm a delivery.";
