import * as z from "zod/mini";
import type { CertificationStatus } from "../../functions/deliveries/certification/certification.ts";
import type {
  CheckName,
  Expectation,
  toResponse,
} from "../../functions/deliveries/certification/certification-presenter.ts";
import type { FailureCode } from "../../functions/foundation/events/failure-code.ts";
import { type FieldsOf, flag, id, instant, oneOf, text } from "./fields.ts";
import { deliveryErrorMeanings } from "./webhook.ts";

type ShownCertification = ReturnType<typeof toResponse>;

export const certificationCheckMeanings: Record<CheckName, string> = {
  valid: "a valid delivery",
  repeated: "the same delivery again, with the same id",
  unusual_body: "a valid delivery whose JSON has unusual spacing, an é, 64 levels and an integer of 308 digits",
  forged_signature: "a request with both signatures made with another secret",
  stale_timestamp: "a request with a timestamp an hour old, and correct signatures",
  cut_body: "a request with half of the body, and the signatures of the complete body",
  response_time: "the time of the slowest response",
};

const checkSchema = z.strictObject({
  check: oneOf<CheckName>("What was checked.", certificationCheckMeanings),
  expected: oneOf<Expectation>("The response that passes.", {
    "2xx": "a status from 200 to 299",
    "4xx": "a status from 400 to 499, except 408 and 429",
    "within 15 s": "a complete response to each request within 15 seconds",
  }),
  status_code: z.nullable(z.int().check(z.describe("The status code of the response; null when no response arrived."))),
  error_code: z.nullable(
    oneOf<FailureCode>(
      "Why the request did not succeed, as for the attempt of a delivery; null for a 2xx.",
      deliveryErrorMeanings,
    ),
  ),
  duration_ms: z.nullable(
    z.number().check(z.minimum(0), z.describe("Milliseconds until the response was read; null when nothing was sent.")),
  ),
  passed: flag("Whether the response is the expected one."),
  hint: z.nullable(text("How to fix the receiver; null for a check that passed.")),
} satisfies FieldsOf<ShownCertification["checks"][number]>);

/** The certification of a receiver. */
export const certificationSchema = z.strictObject({
  id: id("The id of the certification. Sent to the receiver as `X-Service-Probe`."),
  webhook_id: id("The webhook whose receiver is certified."),
  status: oneOf<CertificationStatus>("The status of the certification.", {
    running: "the requests are being sent; it takes up to half a minute",
    finished: "`passed` and `checks` are the result",
    unfinished: "it did not finish within ten minutes, because of an internal error: certify again",
  }),
  created_at: instant("When the certification was requested."),
  finished_at: z.nullable(instant("When it finished; null before.")),
  passed: z.nullable(flag("Whether all checks passed; null without a result.")),
  checks: z.array(checkSchema).check(z.describe("The checks; empty without a result.")),
  note: z.optional(text("What this certification cannot show, of the format of a product that verifies no signature.")),
} satisfies FieldsOf<ShownCertification>);
