import * as z from "zod/mini";
import {
  LATEST_ATTEMPT_SECONDS,
  type StatsWindow,
  type statsOf,
} from "../../functions/deliveries/log/delivery-stats.ts";
import type { FailureCode } from "../../functions/foundation/events/failure-code.ts";
import { count, type FieldsOf, flag, instant, oneOf } from "./fields.ts";
import { webhookEventNameSchema } from "./payload.ts";
import { deliveryErrorMeanings } from "./webhook.ts";

type Stats = ReturnType<typeof statsOf>;

const milliseconds = (description: string) => z.number().check(z.minimum(0), z.describe(description));

const counts = {
  attempts: count("The number of attempts."),
  succeeded: count("The number of them that succeeded."),
};

/** The statistics of a webhook's attempts. */
export const statsSchema = z.strictObject({
  window: oneOf<StatsWindow>("The window.", {
    "24h": "the last 24 hours, in buckets of 30 minutes",
    "7d": "the last 7 days, in buckets of 6 hours",
  }),
  since: instant("Start of the first bucket: a multiple of the length of a bucket."),
  until: instant("Time of the request, within the last bucket."),
  bucket_seconds: count("Length of a bucket in seconds."),
  deliveries_read: count(
    "The number of deliveries that were read: at most 1,000, fewer if they are large. Test deliveries are among them, and their attempts are not counted.",
  ),
  complete: flag(
    "Whether all deliveries of the window were read. False: there are more, and attempts before `covered_since` are not counted, nor later ones of deliveries before it.",
  ),
  covered_since: instant(
    `Start of the time that is counted: \`since\`, or later if \`complete\` is false. Attempts of deliveries whose event is ${LATEST_ATTEMPT_SECONDS / 3600} hours older than \`since\` are not counted.`,
  ),
  ...counts,
  success_rate: z.nullable(
    z
      .number()
      .check(
        z.minimum(0),
        z.maximum(1),
        z.describe("The share of attempts that succeeded, 0 to 1. Null = no attempt."),
      ),
  ),
  response_ms: z.nullable(
    z
      .strictObject({
        p50: milliseconds("Median: half of the responses took at most this long."),
        p95: milliseconds("95 % of the responses took at most this long."),
      })
      .check(
        z.describe(
          "Milliseconds from resolving the host name to the last byte, of the attempts with a response. Null = no response.",
        ),
      ),
  ),
  superseded: z
    .optional(z.int().check(z.minimum(1)))
    .check(z.describe("Deliveries that were not sent because a newer state of their deployment was; absent = none.")),
  by_event: z
    .array(z.strictObject({ event: webhookEventNameSchema, ...counts } satisfies FieldsOf<Stats["by_event"][number]>))
    .check(z.describe("The attempts by event, the most first.")),
  by_error: z
    .array(
      z.strictObject({
        error_code: oneOf<FailureCode>("Why the attempts failed.", deliveryErrorMeanings),
        attempts: counts.attempts,
      } satisfies FieldsOf<Stats["by_error"][number]>),
    )
    .check(z.describe("The failed attempts by error, the most first.")),
  buckets: z
    .array(
      z.strictObject({
        start: instant("Start of the bucket."),
        ...counts,
        p50_ms: z.nullable(milliseconds("Median response time in milliseconds; null = no response.")),
        p95_ms: z.nullable(milliseconds("95th percentile of the response times in milliseconds; null = no response.")),
      } satisfies FieldsOf<Stats["buckets"][number]>),
    )
    .check(z.describe("The attempts over time, oldest bucket first, also the empty ones.")),
} satisfies FieldsOf<Stats>);
