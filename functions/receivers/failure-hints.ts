import type { FailureCode } from "./failure-code.ts";

/** What a hint is derived from. */
interface FailedAttempt {
  /** Absent for a success. */
  error_code?: FailureCode | undefined;
  status_code?: number | undefined;
  /** Where a redirect leads, or the cause of a TLS failure. */
  detail?: string | undefined;
}

/**
 * One sentence on what the receiver's owner should mend, for a failed attempt.
 * @returns undefined for a success
 */
export function failureHint({ error_code, status_code, detail }: FailedAttempt): string | undefined {
  switch (error_code) {
    case undefined:
      return undefined;
    case "timeout":
      return "Answer within 15 seconds: accept the delivery first and do the work afterwards.";
    case "dns_error":
      return "The host name of the URL does not resolve: check its spelling and its DNS records.";
    case "connection_refused":
      return "Nothing accepts connections at the host and port of the URL: check that the receiver runs and no firewall is in between.";
    case "connection_reset":
      return "The receiver closed the connection before it had answered: look for a crash, or a proxy that gives up, at the time of the attempt.";
    case "tls_error":
      return tlsHint(detail);
    case "address_blocked":
      return "The host resolves to an address that is not public: webhooks reach public addresses only.";
    case "invalid_response":
      return "What came back is not a valid HTTP/1.1 response: check that the port speaks HTTP, and how large the headers are.";
    case "http_status":
      return statusHint(status_code ?? 0, detail);
  }
}

function tlsHint(cause = "unknown cause"): string {
  const mend = tlsMends.find(({ causes }) => causes.test(cause))?.mend ?? "check the receiver's TLS configuration.";
  return `The TLS connection failed (${cause}): ${mend}`;
}

const tlsMends = [
  { causes: /EXPIRED/, mend: "renew the certificate." },
  { causes: /SELF_SIGNED/, mend: "use a certificate from a public authority." },
  { causes: /UNABLE_TO|UNTRUSTED/, mend: "send the full certificate chain, intermediate certificates included." },
  { causes: /ALTNAME|HOSTNAME/, mend: "use a certificate that names the host of the URL." },
];

function statusHint(status: number, location?: string): string {
  if (status >= 300 && status < 400) {
    if (location === undefined) return `The receiver answered ${status}: answer 2xx, redirects are not followed.`;
    return `Redirects are not followed: register ${location} instead.`;
  }
  return `The receiver answered ${status}: ${statusMends[status] ?? generalMend(status)}`;
}

const statusMends: Record<number, string> = {
  400: "it did not accept the request; see its answer for the reason.",
  401: "it wants credentials that deliveries do not carry; let the path in without them and verify the signature.",
  403: "it refuses the request; let the path in and verify the signature, and check for a firewall that blocks it.",
  404: "the path of the URL does not exist there.",
  405: "the path does not take POST requests.",
  410: "it says that it is gone for good, so the webhook was disabled.",
  413: "it does not take bodies of this size; raise its limit to 256 KB.",
  415: "it does not take application/json.",
  429: "it is asked too often; let it answer with Retry-After.",
};

const generalMend = (status: number): string =>
  status >= 500 ? "look into its log at the time of the attempt." : "answer 2xx to confirm a delivery.";
