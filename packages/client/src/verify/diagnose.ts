import { areEqual, type Bytes, fromText } from "./bytes.ts";
import { hmac } from "./hashes.ts";
import type { Finding } from "./mistakes.ts";
import * as mistakes from "./mistakes.ts";
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
  body: Uint8Array;
}

interface ParsedRequest extends ReceivedRequest {
  body: Bytes;
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
export async function diagnose(
  { headers, body }: ReceivedRequest,
  secrets: string[],
  options: DiagnoseOptions,
): Promise<Verdict[]> {
  const request = { headers, body: Uint8Array.from(body) };
  const present = schemes.filter(({ header }) => headers.has(header.toLowerCase()));
  const verdicts: Verdict[] = [];
  for (const scheme of present) verdicts.push(await diagnoseScheme(scheme, request, secrets, options));
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

async function diagnoseScheme(
  scheme: Scheme,
  request: ParsedRequest,
  secrets: string[],
  options: DiagnoseOptions,
): Promise<Verdict> {
  const { header } = scheme;
  const input = inputOf(request);
  const missing = scheme === standardWebhooks ? missingHeaders(request) : [];
  const signer = await signerOf(scheme, header, request, input, secrets);
  if (signer !== undefined && missing.length === 0) {
    const findings = scheme === standardWebhooks ? timestampFindings(input.timestamp, options) : [];
    return { header, isValid: findings.length === 0, secretNumber: signer + 1, findings };
  }
  const { previousHeader } = scheme;
  const oldSigner = previousHeader ? await signerOf(scheme, previousHeader, request, input, secrets) : undefined;
  if (oldSigner !== undefined) return { header, isValid: true, secretNumber: oldSigner + 1, findings: [oldSecret] };
  if (missing.length > 0) return invalid(header, missing);
  if (request.body.length === 0) return invalid(header, [emptyBody]);
  const signatures = signaturesIn(scheme, header, request);
  const findings =
    (await findWrongHeader(scheme, request, input, secrets)) ??
    (await findTruncation(scheme, signatures, input, secrets)) ??
    (await findMistakes(scheme, signatures, input, secrets));
  return invalid(header, findings ?? unexplained(request, secrets));
}

const invalid = (header: string, findings: Finding[]): Verdict => ({
  header,
  isValid: false,
  secretNumber: null,
  findings,
});

function inputOf({ headers, body }: ParsedRequest): SignatureInput {
  const id = headers.get("webhook-id") ?? headers.get("x-service-delivery") ?? "";
  return { id, timestamp: headers.get("webhook-timestamp") ?? "", body };
}

const signaturesIn = ({ split }: Scheme, header: string, { headers }: ReceivedRequest): string[] =>
  split(headers.get(header.toLowerCase()) ?? "").filter((signature) => signature !== "");

/** @returns the index of the secret that produced one of the signatures in a header; undefined if none did */
async function signerOf(
  scheme: Scheme,
  header: string,
  request: ParsedRequest,
  input: SignatureInput,
  secrets: string[],
): Promise<number | undefined> {
  const signatures = signaturesIn(scheme, header, request);
  const correct = await Promise.all(secrets.map((secret) => signatureOf(scheme, secret, input)));
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

async function findWrongHeader(
  scheme: Scheme,
  request: ParsedRequest,
  input: SignatureInput,
  secrets: string[],
): Promise<Finding[] | undefined> {
  const other = scheme === standardWebhooks ? serviceSignature : standardWebhooks;
  if ((await signerOf(other, scheme.header, request, input, secrets)) === undefined) return undefined;
  const message = `The value of ${scheme.header} is a signature for ${other.header}.`;
  return [{ code: "wrong_header", message, fix: "Compare each signature with the header of its own scheme." }];
}

/** A shorter part could match by chance. */
const MIN_PART_LENGTH = 16;

async function findTruncation(
  scheme: Scheme,
  signatures: string[],
  input: SignatureInput,
  secrets: string[],
): Promise<Finding[] | undefined> {
  const expected = await Promise.all(secrets.map((secret) => signatureOf(scheme, secret, input)));
  // A signature without its base64 padding is not truncated: findMistakes reports it.
  const isPartOf = (part: string, whole: string) =>
    whole.startsWith(part) && part.length < whole.replace(/=+$/, "").length;
  const part = signatures.find(
    (text) => text.length >= MIN_PART_LENGTH && expected.some((whole) => isPartOf(text, whole)),
  );
  if (part === undefined) return undefined;
  const message = `The signature is truncated to ${part.length} characters.`;
  const fix = "Keep the whole header value; check for a column or a buffer that is too short.";
  return [{ code: "signature_truncated", message, fix }];
}

/** A value that may have been used for the signature, and the mistakes that lead to it. The correct value has none. */
interface Candidate<Value> {
  value: Value;
  mistakes: Finding[];
}

/** Upper bound on combined mistakes. Larger combinations match by chance and take too long. */
const MAX_MISTAKES = 2;

/** Upper bound on signatures that are explained, because a hostile header may contain thousands. A rotation has three. */
const MAX_EXPLAINED = 3;

/** Finds the smallest combination of mistakes that produces one of the signatures. */
async function findMistakes(
  scheme: Scheme,
  signatures: string[],
  input: SignatureInput,
  secrets: string[],
): Promise<Finding[] | undefined> {
  const targets = signatures.slice(0, MAX_EXPLAINED).map((text) => text.trim().replaceAll('"', ""));
  const encodings = withMistakes(scheme.encode, mistakes.encodingsOf.get(scheme));
  let best: Finding[] | undefined;
  for await (const mac of macCandidates(scheme, input, secrets)) {
    for (const encoding of encodings) {
      const found = mistakesOf(mac, encoding);
      if (found.length > MAX_MISTAKES || (best && found.length >= best.length)) continue;
      if (targets.includes(encoding.value(mac.value))) best = found;
    }
  }
  if (best?.length !== 0) return best;
  return [{ code: "signature_quoted", message: "The signature is enclosed in quotes.", fix: "Remove the quotes." }];
}

/** Generates the MACs of all combinations of up to MAX_MISTAKES mistakes. */
async function* macCandidates(
  scheme: Scheme,
  input: SignatureInput,
  secrets: string[],
): AsyncGenerator<Candidate<Bytes>> {
  const bodies = variantsOf(input.body, mistakes.bodies, ({ change }) => toBytes(change(input.body)), areEqual);
  const contents = withMistakes<mistakes.ContentChange>(scheme.content, mistakes.contentsOf.get(scheme));
  const macs = withMistakes<mistakes.MacChange>(hmac, mistakes.macs);
  const keys = withMistakes<mistakes.KeyChange>(scheme.key, mistakes.keysOf.get(scheme));
  for (const secret of secrets.flatMap((each) =>
    variantsOf(each, mistakes.secrets, ({ change }) => change(each), Object.is),
  )) {
    for (const key of keys) {
      const keyBytes = await key.value(secret.value);
      for (const body of bodies) {
        for (const content of contents) {
          if (hasTooMany(secret, key, body, content)) continue;
          const signed = content.value({ ...input, body: body.value });
          if (signed === undefined) continue;
          for (const mac of macs) {
            if (hasTooMany(secret, key, body, content, mac)) continue;
            yield { value: await mac.value(keyBytes, signed), mistakes: mistakesOf(secret, key, body, content, mac) };
          }
        }
      }
    }
  }
}

const mistakesOf = (...candidates: Candidate<unknown>[]): Finding[] => candidates.flatMap(({ mistakes }) => mistakes);
const hasTooMany = (...candidates: Candidate<unknown>[]): boolean => mistakesOf(...candidates).length > MAX_MISTAKES;

const toCandidate = <Change>({ change, ...mistake }: mistakes.MistakeRow<Change>): Candidate<Change> => ({
  value: change,
  mistakes: [mistake],
});

/** The correct function, and the functions that the rows have in its place. */
const withMistakes = <Change>(correct: Change, rows: mistakes.MistakeRow<Change>[] = []): Candidate<Change>[] => [
  { value: correct, mistakes: [] },
  ...rows.map(toCandidate),
];

/** The value itself, and each different value that a row changes it to. */
function variantsOf<Value, Change>(
  value: Value,
  rows: mistakes.MistakeRow<Change>[],
  apply: (row: mistakes.MistakeRow<Change>) => Value | undefined,
  isSame: (one: Value, other: Value) => boolean,
): Candidate<Value>[] {
  const variants: Candidate<Value>[] = [{ value, mistakes: [] }];
  for (const row of rows) {
    const changed = apply(row);
    const isNew = changed !== undefined && !variants.some((variant) => isSame(variant.value, changed));
    if (isNew) variants.push({ ...toCandidate(row), value: changed });
  }
  return variants;
}

const toBytes = (body: Bytes | string | undefined): Bytes | undefined =>
  typeof body === "string" ? fromText(body) : body;

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
    const isCase = secrets.some((secret) => SECRET.test(secret.toLowerCase()));
    const message =
      "The secret is not one that the service created (whsec_ and 64 hex digits, 70 characters in total): it is cut off, or was imported with the webhook.";
    const fix = "Copy it again. If it is lost, create a new one: svc webhooks rotate <id>.";
    findings.push(isCase ? mistakes.caseChanged : { code: "secret_incomplete", message, fix });
  }
  if (findings.length > 0) return findings;
  const message =
    "The secret or the body is a different one, and no usual mistake explains it. The secret may be that of another webhook, or an old one after its overlap.";
  const fix =
    "Check that the secret is that of this webhook (create a new one: svc webhooks rotate <id>), and compare the body with what was sent (svc deliveries show <id>).";
  return [{ code: "unexplained", message, fix }];
}
