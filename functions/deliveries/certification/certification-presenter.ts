import type { WebhookFormat } from "../../webhooks/formats/format.ts";
import { failureHint } from "../../webhooks/receiver/failure-hints.ts";
import {
  allPassed,
  type Certification,
  isAnswered,
  isPassed,
  type Probe,
  type ProbeResult,
  type ProbeResults,
  probeExpectations,
  probes,
  probesOf,
  statusOf,
  webhookIdOf,
} from "./certification.ts";

/* The API representation of certifications, with a hint for each check that did not pass. */

/** A check is a probe, or `response_time`, which is about all of them. */
export type CheckName = Probe | "response_time";

export type Expectation = "2xx" | "4xx" | "within 15 s";

interface Check {
  check: CheckName;
  expected: Expectation;
  status_code: number | null;
  error_code: ProbeResult["error_code"] | null;
  duration_ms: number | null;
  passed: boolean;
  hint: string | null;
}

/** Converts a certification to its representation at the time `now`. Without results it has no checks. */
export function toResponse(certification: Certification, now: Date) {
  const { id, created_at, finished_at = null, results, format } = certification;
  return {
    id,
    webhook_id: webhookIdOf(certification),
    status: statusOf(certification, now),
    created_at,
    finished_at,
    passed: results ? allPassed(results, format) : null,
    checks: results ? checksOf(results, format) : [],
    ...(probesOf(format).length < probes.length && { note: UNVERIFYING_NOTE }),
  };
}

const UNVERIFYING_NOTE =
  "Only a valid delivery was sent: the product behind this URL verifies no signature and would show forged, stale and repeated deliveries to people. So nothing shows that it rejects them: any caller that knows the URL or the credential can send messages. Keep both secret.";

const checksOf = (results: ProbeResults, format?: WebhookFormat): Check[] => [
  ...probesOf(format).map((probe) => probeCheck(probe, results)),
  responseTimeCheck(results),
];

function probeCheck(probe: Probe, results: ProbeResults): Check {
  const result = results[probe];
  const passed = isPassed(probe, result);
  return {
    check: probe,
    expected: probeExpectations[probe],
    ...shownResult(result),
    passed,
    hint: passed ? null : hintOf(probe, results),
  };
}

const shownResult = (result: ProbeResult | undefined) => ({
  status_code: result?.status_code ?? null,
  error_code: result?.error_code ?? null,
  duration_ms: result?.duration_ms ?? null,
});

/** Shows the first probe without a complete response, or the slowest one. */
function responseTimeCheck(results: ProbeResults): Check {
  const sent = Object.values(results);
  const unanswered = sent.find((result) => !isAnswered(result));
  const slowest = sent.toSorted((one, other) => other.duration_ms - one.duration_ms)[0];
  const passed = slowest !== undefined && unanswered === undefined;
  const hint = unanswered ? failureHintOf(unanswered) : NOT_SENT;
  const shown = shownResult(unanswered ?? slowest);
  return { check: "response_time", expected: "within 15 s", ...shown, passed, hint: passed ? null : hint };
}

const NOT_SENT =
  "Nothing was sent, because the project was suspended meanwhile. Contact the operator of the platform, then certify again.";

function hintOf(probe: Probe, results: ProbeResults): string {
  const result = results[probe];
  if (!result) {
    if (!results.valid) return NOT_SENT;
    return "Not sent, because the valid delivery failed: fix that check first, then certify again.";
  }
  if (!isAnswered(result)) return failureHintOf(result);
  return probeExpectations[probe] === "2xx"
    ? rejectedHint(probe, result, isPassed("valid", results.valid))
    : notRejectedHint(probe, result);
}

/** The hint for a receiver that did not accept an authentic delivery. */
function rejectedHint(probe: Probe, result: ProbeResult, isValidPassed: boolean): string {
  // When the valid delivery fails too, the cause is not what is special about this one.
  if (probe === "valid" || !isValidPassed) return failureHintOf(result);
  return `The receiver returned ${result.status_code}: ${acceptFixes[probe] ?? ""}`;
}

const acceptFixes: Partial<Record<Probe, string>> = {
  repeated:
    "return 2xx for a delivery that was received before, without processing it again. The same delivery can arrive more than once, and anything but 2xx is retried.",
  unusual_body:
    "verify the signature over the raw bytes of the body, before they are parsed or decoded. This body has unusual spacing and an é, which parsing and serializing it again would change. It also has 64 levels and an integer of 308 digits, which the parser must accept.",
};

/** The hint for a receiver that did not reject a request that is not authentic. */
function notRejectedHint(probe: Probe, result: ProbeResult): string {
  const { status_code = 0, error_code } = result;
  if (error_code === undefined) return acceptedHints[probe] ?? "";
  const isRedirect = status_code >= 300 && status_code < 400;
  if (isRedirect) return failureHintOf(result);
  return `The receiver returned ${status_code}, which asks for the request again: respond with 401 to a request that is not authentic. Verify it before its body is parsed.`;
}

const acceptedHints: Partial<Record<Probe, string>> = {
  forged_signature:
    "The receiver accepted a request that was signed with another secret: verify the signature, and respond with 401 when it does not match. Otherwise anyone who knows the URL can send events.",
  stale_timestamp:
    "The receiver accepted a delivery whose webhook-timestamp is an hour old: verify webhook-signature, and respond with 401 when the timestamp is more than 5 minutes from now. X-Service-Signature covers no time: a receiver that verifies only that signature cannot recognize a replay. Only the Standard Webhooks scheme protects from it.",
  cut_body:
    "The receiver accepted half of a body: verify the signature over the complete raw body before it is parsed, and respond with 401 when it does not match.",
};

function failureHintOf(result: ProbeResult): string {
  // The hint of a delivery would say that the webhook was disabled. A certification disables nothing.
  if (result.status_code === 410) {
    return "The receiver returned 410, which says that it has been removed permanently: a delivery with this response disables the webhook.";
  }
  return failureHint(result) ?? "";
}
