import { type Finding, mistakenSignature, mistakesOf } from "./mistakes.ts";
import {
  type Scheme,
  type SignatureInput,
  serviceSignature,
  signatureOf,
  standardWebhooks,
} from "./signature-schemes.ts";

/* Verifies the signatures of a delivery, and finds the usual mistake that explains an invalid one. Pure. */

export interface ReceivedRequest {
  /** Names in lower case. */
  headers: ReadonlyMap<string, string>;
  /** The exact bytes that were received. */
  body: Buffer;
}

export interface Verdict {
  /** The name of the signature header. */
  header: string;
  /** Whether a correct receiver accepts the signature. */
  isValid: boolean;
  /** The number of the secret that signed, from 1; null if none did. */
  secretNumber: number | null;
  /** What is wrong with an invalid signature, or to note about a valid one. */
  findings: Finding[];
}

export interface DiagnoseOptions {
  /** The clock of the receiver. */
  now: Date;
  /** Maximum distance of the timestamp from `now`, in both directions. */
  toleranceSeconds: number;
}

/** The default of the Standard Webhooks libraries. */
export const TOLERANCE_SECONDS = 300;

const schemes = [serviceSignature, standardWebhooks];

/** @returns one verdict per signature header; a single invalid one when the request has none */
export function diagnose(request: ReceivedRequest, secrets: string[], options: DiagnoseOptions): Verdict[] {
  const verdicts = schemes
    .filter(({ header }) => request.headers.has(header.toLowerCase()))
    .map((scheme) => diagnoseScheme(scheme, request, secrets, options));
  if (verdicts.length === 0) return [invalid(serviceSignature.header, [signatureMissing])];
  const hasValid = verdicts.some(({ isValid }) => isValid);
  return verdicts.map((verdict) =>
    hasValid && verdict.findings.some(({ code }) => code === "unexplained")
      ? { ...verdict, findings: [headersChanged] }
      : verdict,
  );
}

const headersChanged: Finding = {
  code: "headers_changed",
  message:
    "The other signature is valid, so the secret and the body are right: this header, webhook-id or webhook-timestamp is not as it was sent.",
  fix: "Pass webhook-id, webhook-timestamp and the signatures as they were received.",
};

const signatureMissing: Finding = {
  code: "signature_missing",
  message: "The request has neither an X-Service-Signature nor a webhook-signature header.",
  fix: "Check the headers as received: names are case-insensitive, and a proxy may remove unknown headers.",
};

function diagnoseScheme(
  scheme: Scheme,
  request: ReceivedRequest,
  secrets: string[],
  options: DiagnoseOptions,
): Verdict {
  const { header } = scheme;
  const input = inputOf(request);
  const missing = scheme === standardWebhooks ? missingHeaders(request) : [];
  const signer = signerOf(scheme, header, request, input, secrets);
  if (signer !== undefined && missing.length === 0) {
    const findings = scheme === standardWebhooks ? timestampFindings(input.timestamp, options) : [];
    return { header, isValid: findings.length === 0, secretNumber: signer + 1, findings };
  }
  const { previousHeader } = scheme;
  const oldSigner = previousHeader ? signerOf(scheme, previousHeader, request, input, secrets) : undefined;
  if (oldSigner !== undefined) return { header, isValid: true, secretNumber: oldSigner + 1, findings: [oldSecret] };
  if (missing.length > 0) return invalid(header, missing);
  if (request.body.length === 0) return invalid(header, [emptyBody]);
  const signatures = signaturesIn(scheme, header, request);
  const findings = findWrongHeader(scheme, request, input, secrets) ?? findMistake(scheme, signatures, input, secrets);
  return invalid(header, findings ?? unexplained(request, secrets));
}

const invalid = (header: string, findings: Finding[]): Verdict => ({
  header,
  isValid: false,
  secretNumber: null,
  findings,
});

function inputOf({ headers, body }: ReceivedRequest): SignatureInput {
  const id = headers.get("webhook-id") ?? headers.get("x-service-delivery") ?? "";
  return { id, timestamp: headers.get("webhook-timestamp") ?? "", body };
}

const signaturesIn = ({ split }: Scheme, header: string, { headers }: ReceivedRequest): string[] =>
  split(headers.get(header.toLowerCase()) ?? "").filter((signature) => signature !== "");

/** @returns the index of the secret that produced one of the signatures in a header; undefined if none did */
function signerOf(
  scheme: Scheme,
  header: string,
  request: ReceivedRequest,
  input: SignatureInput,
  secrets: string[],
): number | undefined {
  const signatures = signaturesIn(scheme, header, request);
  const correct = secrets.map((secret) => signatureOf(scheme, secret, input));
  const index = correct.findIndex((signature) => signatures.includes(signature));
  return index === -1 ? undefined : index;
}

const oldSecret: Finding = {
  code: "old_secret",
  message:
    "The secret is an old one: it signs only X-Service-Signature-Previous, until the overlap of the rotation is over.",
  fix: "Use the newest secret, or also check X-Service-Signature-Previous during a rotation.",
};

const emptyBody: Finding = {
  code: "body_empty",
  message: "The body is empty.",
  fix: "Read the raw body once, before a body parser reads it.",
};

function missingHeaders({ headers }: ReceivedRequest): Finding[] {
  const missing = ["webhook-id", "webhook-timestamp"].filter((name) => !headers.get(name));
  if (missing.length === 0) return [];
  const message = `webhook-signature also covers ${missing.join(" and ")}, which ${missing.length === 1 ? "is" : "are"} missing.`;
  const fix = "Pass all three headers: webhook-id, webhook-timestamp, webhook-signature.";
  return [{ code: "header_missing", message, fix }];
}

/** In seconds. */
const UNIX_TIME = /^\d{1,12}$/;

function timestampFindings(timestamp: string, { now, toleranceSeconds }: DiagnoseOptions): Finding[] {
  const prefix = "The signature is correct";
  if (!UNIX_TIME.test(timestamp)) {
    const message = `${prefix}, but the timestamp is not a number of seconds.`;
    return [{ code: "timestamp_invalid", message, fix: "Pass webhook-timestamp unchanged." }];
  }
  const ageSeconds = Math.floor(now.getTime() / 1000) - Number(timestamp);
  if (Math.abs(ageSeconds) <= toleranceSeconds) return [];
  if (ageSeconds > 0) {
    const message = `${prefix}, but it is ${ageSeconds} s old. A receiver accepts ${toleranceSeconds} s, and treats older ones as a replay.`;
    const fix =
      "Verify on arrival, and check the receiver's clock. For a saved delivery, verify as of its arrival: svc verify --at <time>.";
    return [{ code: "timestamp_stale", message, fix }];
  }
  const message = `${prefix}, but its timestamp is ${-ageSeconds} s in the future. A receiver accepts ${toleranceSeconds} s.`;
  return [{ code: "timestamp_future", message, fix: "Check the receiver's clock: it is slow." }];
}

function findWrongHeader(
  scheme: Scheme,
  request: ReceivedRequest,
  input: SignatureInput,
  secrets: string[],
): Finding[] | undefined {
  const other = scheme === standardWebhooks ? serviceSignature : standardWebhooks;
  if (signerOf(other, scheme.header, request, input, secrets) === undefined) return undefined;
  const message = `The value of ${scheme.header} is a signature for ${other.header}.`;
  return [{ code: "wrong_header", message, fix: "Compare each signature with the header of its own scheme." }];
}

/** Upper bound on signatures that are explained, because a hostile header may contain thousands. A rotation has three. */
const MAX_EXPLAINED = 3;

/** Finds the mistake that produces one of the signatures. Two mistakes at once are not found. */
function findMistake(
  scheme: Scheme,
  signatures: string[],
  input: SignatureInput,
  secrets: string[],
): Finding[] | undefined {
  const targets = signatures.slice(0, MAX_EXPLAINED);
  const found = mistakesOf(scheme).find((mistake) =>
    secrets.some((secret) => targets.includes(mistakenSignature(scheme, mistake, secret, input) ?? "")),
  );
  return found && [{ code: found.code, message: found.message, fix: found.fix }];
}

/** `whsec_` and 64 hex digits. */
const SECRET = /^whsec_[0-9a-f]{64}$/;

/** Reports what is known about a signature that no mistake explains. */
function unexplained({ headers, body }: ReceivedRequest, secrets: string[]): Finding[] {
  const findings: Finding[] = [];
  const contentLength = headers.get("content-length");
  if (contentLength !== undefined && Number(contentLength) !== body.length) {
    const message = `The body has ${body.length} bytes, but Content-Length is ${contentLength}: the body was changed.`;
    findings.push({ code: "body_length", message, fix: "Verify the exact bytes that were received." });
  }
  if (secrets.some((secret) => secret.startsWith("svc_"))) {
    const message = "A secret that starts with svc_ is an API key.";
    findings.push({ code: "secret_is_api_key", message, fix: "Use the webhook's secret, which starts with whsec_." });
  } else if (!secrets.some((secret) => SECRET.test(secret))) {
    const message =
      "The secret is not one that the service created (whsec_ and 64 hex digits, 70 characters in total): it is cut off or changed, or was imported with the webhook.";
    const fix = "Copy it again. If it is lost, create a new one: svc webhooks rotate <id>.";
    findings.push({ code: "secret_incomplete", message, fix });
  }
  if (findings.length > 0) return findings;
  const message =
    "The secret or the body is a different one, and no usual mistake explains it. The secret may be that of another webhook, or an old one after its overlap.";
  const fix =
    "Check that the secret is that of this webhook (create a new one: svc webhooks rotate <id>), and compare the body with what was sent (svc deliveries show <id>).";
  return [{ code: "unexplained", message, fix }];
}
