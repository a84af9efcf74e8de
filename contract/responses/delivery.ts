import * as z from "zod/mini";
import type { DeliveryStatus, Trigger } from "../../functions/deliveries/line/delivery.ts";
import type { toDetail, toListItem, toRecoveryResult } from "../../functions/deliveries/log/delivery-presenter.ts";
import { LIST_CURSOR_PATTERN } from "../../functions/deliveries/log/list-cursor.ts";
import type { WaitingFor } from "../../functions/deliveries/log/waiting.ts";
import type { FailureCode } from "../../functions/foundation/events/failure-code.ts";
import { count, type FieldsOf, flag, id, instant, oneOf, text } from "./fields.ts";
import { webhookEventNameSchema, webhookPayloadSchema } from "./payload.ts";
import { deliveryErrorMeanings } from "./webhook.ts";

/** The result of an attempt, also in lists. */
const result = {
  at: instant("When the attempt was made."),
  duration_ms: z
    .number()
    .check(z.minimum(0), z.describe("Milliseconds from resolving the host name to the last byte read.")),
  status_code: z.nullable(z.int().check(z.describe("The status code of the response; null when no response arrived."))),
  error_code: z.nullable(oneOf<FailureCode>("Why the attempt failed; null for a success.", deliveryErrorMeanings)),
  hint: z.nullable(text("One sentence on how to fix the receiver; null for a success.")),
};

const inList = {
  id: id("The id of the delivery. Sent to the receiver as `X-Service-Delivery`, the same at every attempt."),
  webhook_id: id("The webhook that receives the delivery."),
  event: webhookEventNameSchema,
  deployment_id: z.nullable(id("The deployment that the event is about; null = the event is not about a deployment.")),
  status: oneOf<DeliveryStatus>("The status of the delivery.", {
    pending: "an attempt is due now, or at `next_attempt_at`",
    succeeded: "the receiver returned 2xx",
    failed: "the last attempt failed, and no retry follows",
    held: "the webhook was disabled, or its project suspended, when the event arrived or the next attempt was due",
    cancelled: "the webhook was deleted before the delivery succeeded",
    shadowed:
      "the webhook was in shadow mode when the next attempt was due: nothing was sent; `redeliver`, or `recoverDeliveries` with this status, sends it later",
    superseded:
      "its webhook has `delivery: latest`, and the deployment has a newer state, which `superseded_by` delivers: this one is not sent, and needs no repair",
  }),
  test: flag("Whether this is a test delivery with sample data."),
  created_at: instant("When the delivery was created, shortly after the event arrived."),
  waiting_for: z.nullable(
    oneOf<WaitingFor>(
      "The reason why the delivery waits. Null = an attempt is being made or about to be, or none follows.",
      {
        schedule: "its next attempt, at `next_attempt_at`",
        recovery:
          "the webhook fails. It is sent after the next success, or is itself the next probe, at `next_attempt_at`; after a success, all that waits is sent, oldest first",
        busy: "its attempt is due, and waits for a free sender: others are sent to this webhook or project, or the webhook is slow",
        suspended:
          "the webhook is disabled, or the project suspended. A pending delivery becomes `held` at its next attempt. A held one is not sent by itself, also not after the webhook is enabled: `recoverDeliveries` or `redeliver` sends it",
      },
    ),
  ),
  next_attempt_at: z.nullable(
    instant(
      "When the next attempt is planned; null when none is. In the past: it is due since then. With `recovery`, the time of the next probe, never in the past.",
    ),
  ),
  attempt_count: count("The number of attempts made so far."),
  last_attempt: z
    .nullable(z.strictObject(result satisfies FieldsOf<NonNullable<ReturnType<typeof toListItem>["last_attempt"]>>))
    .check(z.describe("The result of the last attempt; null before the first one.")),
  superseded_by: z.optional(id("The delivery with the newer state; only with the status `superseded`.")),
};

/** A delivery as an item of a list. */
export const deliverySchema = z.strictObject(inList satisfies FieldsOf<ReturnType<typeof toListItem>>);

type ShownDelivery = ReturnType<typeof toDetail>;

export const attemptSchema = z.strictObject({
  number: z.int().check(z.minimum(1), z.describe("The number of the attempt, from 1.")),
  ...result,
  request_count: z
    .int()
    .check(
      z.minimum(1),
      z.maximum(2),
      z.describe(
        "The number of requests sent: 2 when a reused connection closed before a response, so that the request was sent again over a new one. The receiver may have received both.",
      ),
    ),
  response_excerpt: z.nullable(
    text(
      "The start of the response body, at most 1 KB; null when it is empty, and for attempts before the newest three.",
    ),
  ),
  response_headers: z
    .nullable(z.record(z.string(), z.string()))
    .check(
      z.describe(
        "Headers of the response, with names in lower case: at most ten, 512 bytes in all, without cookies, values that look like a credential, and headers of the connection. Null for a 2xx, when none is left, and for attempts before the newest three.",
      ),
    ),
  trigger: oneOf<Trigger>("Why the attempt was made.", {
    schedule: "it was due according to the retry schedule",
    redeliver: "a redelivery of this delivery was requested",
    recover: "a recovery of failed or held deliveries was requested",
    test: "a test delivery was requested",
  }),
} satisfies FieldsOf<ShownDelivery["attempts"][number]>);

/** A delivery with its payload and attempts. */
export const deliveryDetailSchema = z.strictObject({
  ...inList,
  payload: webhookPayloadSchema,
  attempts: z.array(attemptSchema).check(z.describe("The attempts so far, oldest first.")),
  shadow: z.optional(
    z
      .strictObject({
        at: instant("When the request would have been sent."),
        headers: z
          .record(z.string(), z.string())
          .check(
            z.describe(
              "Its headers, with the signatures at that time, without those of HTTP itself. What signs is `***` without `webhook-secrets:write`.",
            ),
          ),
      } satisfies FieldsOf<NonNullable<ShownDelivery["shadow"]>>)
      .check(z.describe("The last request that was not sent because of the shadow mode; absent = there was none.")),
  ),
} satisfies FieldsOf<ShownDelivery>);

/** The result of one call of a recovery. */
export const recoveryResultSchema = z.strictObject({
  count: count("The number of deliveries that this call sends again, or that wait and are sent now."),
  complete: flag("Whether all deliveries up to the newest were looked at. False: continue at `next_cursor`."),
  next_cursor: z.nullable(
    text("Where to continue: send it as `cursor`. Null when the recovery is complete.", {
      pattern: LIST_CURSOR_PATTERN,
    }),
  ),
} satisfies FieldsOf<ReturnType<typeof toRecoveryResult>>);
