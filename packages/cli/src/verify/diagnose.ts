import * as rows from "./mistakes.ts";
import {
  hmac,
  type Scheme,
  type Signable,
  serviceSignature,
  signatureOf,
  standardWebhooks,
} from "./signature-schemes.ts";

/* Whether the signatures of a delivery hold and, where one does not, which usual mistake made it so. Pure. */

export interface ReceivedRequest {
  /** Names in lower case. */
  headers: ReadonlyMap<string, string>;
  /** The bytes as they came. */
  body: Buffer;
}

export interface Remark {
  /** What is wrong, in a word that stays. */
  code: string;
  says: string;
  fix: string;
}

export interface Verdict {
  /** The header of the signature. */
  header: string;
  /** Whether a receiver that does all right accepts it. */
  holds: boolean;
  /** Which of the secrets signed, from 1; null for none. */
  secret: number | null;
  /** What to know about it; what is wrong, when it does not hold. */
  remarks: Remark[];
}

export interface DiagnoseOptions {
  /** As it is for the receiver. */
  now: Date;
  /** How far the timestamp may be off, either way. */
  toleranceSeconds: number;
}

/** What libraries of Standard Webhooks allow. */
export const TOLERANCE_SECONDS = 300;

const schemes = [serviceSignature, standardWebhooks];

/** @returns one verdict for each signature header that is there; one that says so when none is */
export function diagnose(request: ReceivedRequest, secrets: string[], judgement: DiagnoseOptions): Verdict[] {
  const present = schemes.filter(({ header }) => request.headers.has(header.toLowerCase()));
  if (present.length > 0) return present.map((scheme) => judge(scheme, request, secrets, judgement));
  const { header } = serviceSignature;
  return [refused(header, [noSignature])];
}

const noSignature = {
  code: "signature_missing",
  says: "There is neither X-Service-Signature nor webhook-signature among the headers.",
  fix: "Look at the headers as they came: names are case-insensitive, and proxies may need leave to pass them on.",
};

function judge(scheme: Scheme, request: ReceivedRequest, secrets: string[], judgement: DiagnoseOptions): Verdict {
  const { header } = scheme;
  const signable = signableOf(request);
  const missing = scheme === standardWebhooks ? missingHeaders(request) : [];
  const secret = signerOf(scheme, header, request, signable, secrets);
  if (secret !== undefined && missing.length === 0) {
    const late = scheme === standardWebhooks ? timeRemarks(signable.timestamp, judgement) : [];
    return { header, holds: late.length === 0, secret: secret + 1, remarks: late };
  }
  const { previousHeader } = scheme;
  const older = previousHeader ? signerOf(scheme, previousHeader, request, signable, secrets) : undefined;
  if (older !== undefined) return { header, holds: true, secret: older + 1, remarks: [oldSecret] };
  if (missing.length > 0) return refused(header, missing);
  if (request.body.length === 0) return refused(header, [emptyBody]);
  const found =
    wrongHeader(scheme, request, signable, secrets) ??
    truncated(scheme, signaturesIn(scheme, header, request), signable, secrets) ??
    explain(scheme, signaturesIn(scheme, header, request), signable, secrets);
  return refused(header, found ?? unexplained(request, secrets));
}

const refused = (header: string, remarks: Remark[]): Verdict => ({ header, holds: false, secret: null, remarks });

function signableOf({ headers, body }: ReceivedRequest): Signable {
  const id = headers.get("webhook-id") ?? headers.get("x-service-delivery") ?? "";
  return { id, timestamp: headers.get("webhook-timestamp") ?? "", body };
}

const signaturesIn = ({ split }: Scheme, header: string, { headers }: ReceivedRequest): string[] =>
  split(headers.get(header.toLowerCase()) ?? "").filter((signature) => signature !== "");

/** Which of the secrets has made one of a header's signatures, from 0. */
function signerOf(
  scheme: Scheme,
  header: string,
  request: ReceivedRequest,
  signable: Signable,
  secrets: string[],
): number | undefined {
  const given = signaturesIn(scheme, header, request);
  const index = secrets.findIndex((secret) => given.includes(signatureOf(scheme, secret, signable)));
  return index === -1 ? undefined : index;
}

const oldSecret = {
  code: "old_secret",
  says: "The secret is an old one: it signs X-Service-Signature-Previous, and only until the overlap of the rotation ends.",
  fix: "Put the newest secret in place, or check X-Service-Signature-Previous too during a rotation.",
};

const emptyBody = {
  code: "body_empty",
  says: "The body is empty.",
  fix: "Read the raw body once, before a body parser does.",
};

function missingHeaders({ headers }: ReceivedRequest): Remark[] {
  const missing = ["webhook-id", "webhook-timestamp"].filter((name) => !headers.get(name));
  if (missing.length === 0) return [];
  const says = `${missing.join(" and ")} ${missing.length === 1 ? "is" : "are"} missing, which webhook-signature covers.`;
  return [
    {
      code: "header_missing",
      says,
      fix: "Pass on all three headers: webhook-id, webhook-timestamp, webhook-signature.",
    },
  ];
}

/** Seconds, as text. */
const UNIX_TIME = /^\d{1,12}$/;

function timeRemarks(timestamp: string, { now, toleranceSeconds }: DiagnoseOptions): Remark[] {
  const right = "The signature is right";
  if (!UNIX_TIME.test(timestamp)) {
    const says = `${right}, but the timestamp is no number of seconds.`;
    return [{ code: "timestamp_invalid", says, fix: "Pass webhook-timestamp on as it came." }];
  }
  const age = Math.round(now.getTime() / 1000 - Number(timestamp));
  if (Math.abs(age) <= toleranceSeconds) return [];
  if (age > 0) {
    const says = `${right}, but it was made ${age} s ago and a receiver accepts ${toleranceSeconds} s: to it this is a replay.`;
    const fix = "Verify at once, and check the receiver's clock. For a saved delivery say when it came: --at <time>.";
    return [{ code: "timestamp_stale", says, fix }];
  }
  const says = `${right}, but its timestamp lies ${-age} s in the future and a receiver accepts ${toleranceSeconds} s.`;
  return [{ code: "timestamp_future", says, fix: "Check the receiver's clock: it is slow." }];
}

function wrongHeader(
  scheme: Scheme,
  request: ReceivedRequest,
  signable: Signable,
  secrets: string[],
): Remark[] | undefined {
  // Read as the other scheme writes its value.
  const other = schemes.find(
    (each) => each !== scheme && signerOf(each, scheme.header, request, signable, secrets) !== undefined,
  );
  if (!other) return undefined;
  const says = `This is the value of ${other.header}, not of ${scheme.header}.`;
  return [{ code: "wrong_header", says, fix: "Compare each signature with the header of its own kind." }];
}

/** Fewer characters than these prove nothing. */
const MIN_PREFIX = 16;

function truncated(scheme: Scheme, given: string[], signable: Signable, secrets: string[]): Remark[] | undefined {
  const whole = secrets.map((secret) => signatureOf(scheme, secret, signable));
  // What lacks no more than the padding of its base64 is whole, and written otherwise.
  const isCut = (text: string, each: string) => each.startsWith(text) && text.length < each.replace(/=+$/, "").length;
  const part = given.find((text) => text.length >= MIN_PREFIX && whole.some((each) => isCut(text, each)));
  if (part === undefined) return undefined;
  const says = `The signature is cut off: it has ${part.length} characters.`;
  const fix = "Keep the whole header value; look for a column or a buffer that is too short.";
  return [{ code: "signature_truncated", says, fix }];
}

/** A way to come to a value that is not the right one, and what is wrong with it. None of the right one. */
interface Way<Value> {
  value: Value;
  mistakes: Remark[];
}

/** More mistakes at once are not looked for: they would be found by chance of the rows, not by sense. */
const MAX_MISTAKES = 2;

/** During a rotation there are three. More are not worth the time that a hostile header could take. */
const MAX_EXPLAINED = 3;

/** Searches the rows, fewest mistakes first, for what makes one of these signatures. */
function explain(scheme: Scheme, given: string[], signable: Signable, secrets: string[]): Remark[] | undefined {
  const wanted = given.slice(0, MAX_EXPLAINED).map((text) => text.trim().replaceAll(/^"|"$/g, ""));
  const writings = waysToWrite(scheme);
  let best: Remark[] | undefined;
  for (const { mac, mistakes } of waysToSign(scheme, signable, secrets)) {
    for (const writing of writings) {
      const found = [...mistakes, ...writing.mistakes];
      if (found.length > MAX_MISTAKES || (best && found.length >= best.length)) continue;
      if (wanted.includes(writing.value(mac))) best = found;
    }
  }
  if (best?.length !== 0) return best;
  return [{ code: "signature_quoted", says: "The signature has quotes around it.", fix: "Take them off." }];
}

function* waysToSign(
  scheme: Scheme,
  signable: Signable,
  secrets: string[],
): Generator<{ mac: Buffer; mistakes: Remark[] }> {
  const bodies = waysOf(signable.body, rows.bodies, (row) => toBuffer(row.change(signable.body)));
  const contents = [{ value: scheme.content, mistakes: [] }, ...(rows.contentsOf.get(scheme) ?? []).map(wayBy)];
  const macs = [{ value: hmac, mistakes: [] }, ...rows.macs.map(wayBy)];
  for (const secret of secrets.flatMap((each) => waysOf(each, rows.secrets, (row) => row.change(each)))) {
    const keys = [{ value: scheme.key, mistakes: [] }, ...(rows.keysOf.get(scheme) ?? []).map(wayBy)];
    for (const key of keys) {
      const bytes = key.value(secret.value);
      if (bytes === undefined || tooMany(secret, key)) continue;
      for (const body of bodies) {
        if (tooMany(secret, key, body)) continue;
        for (const content of contents) {
          if (tooMany(secret, key, body, content)) continue;
          const signed = content.value({ ...signable, body: body.value });
          if (signed === undefined) continue;
          for (const mac of macs) {
            const mistakes = all(secret, key, body, content, mac);
            if (mistakes.length <= MAX_MISTAKES) yield { mac: mac.value(bytes, signed), mistakes };
          }
        }
      }
    }
  }
}

const waysToWrite = (scheme: Scheme) => [
  { value: scheme.write, mistakes: [] },
  ...(rows.writesOf.get(scheme) ?? []).map(wayBy),
];

const all = (...ways: Way<unknown>[]): Remark[] => ways.flatMap(({ mistakes }) => mistakes);
const tooMany = (...ways: Way<unknown>[]): boolean => all(...ways).length > MAX_MISTAKES;

const wayBy = <Change>({ change, ...mistake }: rows.Row<Change>): Way<Change> => ({
  value: change,
  mistakes: [mistake],
});

/** The value as it is, and what the rows make of it where they change it. */
function waysOf<Value extends string | Buffer, Change>(
  value: Value,
  changes: rows.Row<Change>[],
  apply: (row: rows.Row<Change>) => Value | undefined,
): Way<Value>[] {
  const ways: Way<Value>[] = [{ value, mistakes: [] }];
  for (const row of changes) {
    const changed = apply(row);
    const isNew = changed !== undefined && !ways.some((way) => String(way.value) === String(changed));
    if (isNew) ways.push({ ...wayBy(row), value: changed });
  }
  return ways;
}

const toBuffer = (body: Buffer | string | undefined): Buffer | undefined =>
  typeof body === "string" ? Buffer.from(body) : body;

/** `whsec_` and 64 hex digits. */
const SECRET = /^whsec_[0-9a-f]{64}$/;

function unexplained({ headers, body }: ReceivedRequest, secrets: string[]): Remark[] {
  const remarks: Remark[] = [];
  const contentLength = headers.get("content-length");
  if (contentLength !== undefined && Number(contentLength) !== body.length) {
    const says = `The body has ${body.length} bytes, and Content-Length says ${contentLength}: it is not as it came.`;
    remarks.push({ code: "body_length", says, fix: "Verify the bytes as they came." });
  }
  if (secrets.some((secret) => secret.startsWith("svc_"))) {
    const says = "A secret that starts with svc_ is an API key.";
    remarks.push({ code: "secret_is_api_key", says, fix: "Take the webhook's secret, which starts with whsec_." });
  } else if (!secrets.some((secret) => SECRET.test(secret))) {
    const says = "The secret is not complete: it has whsec_ and 64 hex digits, 70 characters in all.";
    remarks.push({
      code: "secret_incomplete",
      says,
      fix: "Copy it again; if it is lost, rotate it: svc webhooks rotate <id>.",
    });
  }
  if (remarks.length > 0) return remarks;
  const fix =
    "Check that the secret is that of this webhook (svc webhooks rotate <id> makes a new one), and compare the body with what was sent (svc deliveries show <id>).";
  return [
    {
      code: "unexplained",
      says: "The secret, or the body, is another one: perhaps an old secret whose overlap is over, or that of another webhook. No other usual mistake explains it.",
      fix: fix,
    },
  ];
}
