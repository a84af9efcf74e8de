import * as z from "zod/mini";
import { eventNameSchema, payloadSchema } from "../deployments/event-payload.ts";
import type { FailureCode } from "../receivers/failure-code.ts";
import { count, type FieldsOf, flag, id, instant, oneOf, text } from "../schema/response-schema.ts";
import type { DeliveryStatus, Trigger } from "./delivery.ts";
import type { toDetail, toListItem } from "./delivery-presenter.ts";

const inList = {
  id: id("Names the delivery in paths. Receivers get it as `X-Service-Delivery`, the same at every attempt."),
  webhook_id: id("The webhook that it goes to."),
  event: eventNameSchema,
  deployment_id: id("The deployment that the event tells about."),
  status: oneOf<DeliveryStatus>("Where it stands.", {
    pending: "an attempt is due, or will be at `next_attempt_at`",
    succeeded: "the receiver answered 2xx",
    failed: "all attempts failed",
    held: "the webhook was disabled when the event or its next attempt came",
    cancelled: "the webhook was deleted before",
  }),
  test: flag("Whether it is a sample that somebody sent to try the webhook out."),
  created_at: instant("When the event came in."),
  next_attempt_at: z.nullable(instant("When the next attempt is planned; null when none is.")),
  attempt_count: count("How many attempts were made."),
};

/** A delivery as it stands in a list. */
export const deliverySchema = z.strictObject(inList satisfies FieldsOf<ReturnType<typeof toListItem>>);

type ShownDelivery = ReturnType<typeof toDetail>;

export const attemptSchema = z.strictObject({
  number: z.int().check(z.minimum(1), z.describe("Counts from 1.")),
  at: instant("When it was made."),
  duration_ms: z.number().check(z.minimum(0), z.describe("From dial to the last byte read.")),
  status_code: z.nullable(z.int().check(z.describe("What the receiver answered; null for no answer."))),
  error_code: z.nullable(
    oneOf<FailureCode>("What went wrong; null for a success.", {
      http_status: "it answered something else than 2xx",
      timeout: "no complete answer in 15 seconds",
      dns_error: "the host name does not resolve",
      connection_refused: "nothing accepts connections there",
      connection_reset: "the connection was closed before the answer was complete",
      tls_error: "the TLS connection failed; the hint says why",
      address_blocked: "the host leads to an address that is not public",
      invalid_response: "what came back is not HTTP/1.1, or its headers are too large",
    }),
  ),
  response_excerpt: z.nullable(text("The first of what the receiver answered, at most 1 KB; null for nothing.")),
  trigger: oneOf<Trigger>("Why it was made.", {
    schedule: "its time had come",
    redeliver: "somebody asked for this delivery once more",
    recover: "somebody asked for all that failed or were held",
    test: "somebody tried the webhook out",
  }),
  hint: z.nullable(text("One sentence on what the receiver's owner should mend; null for a success.")),
} satisfies FieldsOf<ShownDelivery["attempts"][number]>);

/** A delivery on its own. */
export const deliveryDetailSchema = z.strictObject({
  ...inList,
  payload: payloadSchema,
  attempts: z.array(attemptSchema).check(z.describe("What was tried, oldest first.")),
} satisfies FieldsOf<ShownDelivery>);

/** How many deliveries a recovery has sent once more. */
export const recoveryResultSchema = z.strictObject({
  count: count("How many are sent once more. At 10,000, or after 20 seconds, the same call continues."),
});
