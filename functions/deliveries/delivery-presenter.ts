import * as z from "zod/mini";
import { eventNames, parseExactly } from "../deployments/deployment-event.ts";
import { failureHint } from "../receivers/failure-hints.ts";
import { fields, time, uuid } from "../schema/input.ts";
import { type Delivery, type DeliveryStatus, deliveryStatuses } from "./delivery.ts";

/* Deliveries as the API shows them, and how it is asked for them. */

/** A delivery as it stands in a list. */
export function toListItem(delivery: Delivery) {
  const { id, webhook_id, event, deployment_id, status, test = false, created_at, attempt_count } = delivery;
  const next_attempt_at = delivery.next_attempt_at ?? null;
  return { id, webhook_id, event, deployment_id, status, test, created_at, next_attempt_at, attempt_count };
}

/** A delivery on its own: with what was sent, and what came of it each time. */
export function toDetail(delivery: Delivery) {
  const attempts = (delivery.attempts ?? []).map((attempt) => ({
    number: attempt.number,
    at: attempt.at,
    duration_ms: attempt.duration_ms,
    status_code: attempt.status_code ?? null,
    error_code: attempt.error_code ?? null,
    response_excerpt: attempt.response_excerpt ?? null,
    trigger: attempt.trigger,
    hint: failureHint(attempt) ?? null,
  }));
  return { ...toListItem(delivery), payload: parseExactly(delivery.body), attempts };
}

const MAX_PAGE = 100;
const DEFAULT_PAGE = 20;
const limitRule = `must be a whole number from 1 to ${MAX_PAGE}`;

/** The query of a list of deliveries. `given` is what came, for the link to the next page. */
export const listQuery = z.pipe(
  fields({
    status: z.optional(z.enum(deliveryStatuses, `must be one of ${deliveryStatuses.join(", ")}`)),
    limit: z.optional(z.string().check(z.regex(/^([1-9]\d?|100)$/, limitRule))),
    cursor: z.optional(uuid),
  }),
  z.transform((given: { status?: DeliveryStatus; limit?: string; cursor?: string }) => ({
    ...given,
    limit: Number(given.limit ?? DEFAULT_PAGE),
    given: { ...given },
  })),
);
export type ListQuery = Pick<z.infer<typeof listQuery>, "status" | "limit" | "cursor">;

/** Which deliveries are to be sent once more: those of events since a time. */
export const recoverInput = fields({
  since: time,
  status: z.optional(z.enum(["failed", "held"], "must be failed or held")),
});

/** Which event a test delivery pretends. */
export const testDeliveryInput = fields({
  event: z._default(z.enum(eventNames, `must be one of ${eventNames.join(", ")}`), "deploy.succeeded"),
});
