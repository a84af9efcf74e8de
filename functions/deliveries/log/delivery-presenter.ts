import * as z from "zod/mini";
import { subscribableNames } from "../../foundation/events/catalogue.ts";
import { parseJsonExactly } from "../../foundation/events/deployment-event.ts";
import { eventName } from "../../foundation/events/event-name-input.ts";
import { failureCodes } from "../../foundation/events/failure-code.ts";
import type { WebhookEventName } from "../../foundation/events/webhook-event.ts";
import { fields, invalidField, isoTime, orRequired, timeText, uuid } from "../../foundation/schema/input.ts";
import { page, pageFields } from "../../foundation/schema/page.ts";
import { failureHint } from "../../webhooks/receiver/failure-hints.ts";
import { subscribedNames } from "../../webhooks/webhook/subscribed-names.ts";
import type { Webhook } from "../../webhooks/webhook/webhook.ts";
import { type Attempt, type Delivery, type DeliveryStatus, deliveryStatuses } from "../line/delivery.ts";
import { LIST_CURSOR_PATTERN, listCursorRule } from "./list-cursor.ts";
import { waitOf } from "./waiting.ts";

/* The API representation of deliveries, and the inputs of their endpoints. */

/**
 * Converts a delivery to an item of a list.
 * @param webhook its webhook as it is now
 */
export function toListItem(delivery: Delivery, webhook: Webhook, now: Date) {
  const { id, webhook_id, event, deployment_id, status, test = false, created_at, attempt_count } = delivery;
  const { superseded_by } = delivery;
  const { waiting_for, next_attempt_at } = waitOf(delivery, webhook, now);
  return {
    id,
    webhook_id,
    event,
    deployment_id,
    status,
    test,
    created_at,
    waiting_for,
    next_attempt_at,
    attempt_count,
    last_attempt: lastAttemptOf(delivery, webhook),
    ...(superseded_by !== undefined && { superseded_by }),
  };
}

/** Returns what a list shows of the last attempt; null = none was made. */
function lastAttemptOf({ attempts = [] }: Delivery, { secret_rotated_at }: Webhook) {
  const last = attempts.at(-1);
  if (!last) return null;
  const { at, duration_ms, status_code = null, error_code = null } = last;
  return { at, duration_ms, status_code, error_code, hint: failureHint(last, secret_rotated_at) ?? null };
}

/** Converts a delivery to the full representation, with its payload and attempts. */
export function toDetail(delivery: Delivery, webhook: Webhook, now: Date) {
  const attempts = (delivery.attempts ?? []).map((attempt) => ({
    number: attempt.number,
    at: attempt.at,
    duration_ms: attempt.duration_ms,
    request_count: attempt.request_count ?? 1,
    status_code: attempt.status_code ?? null,
    error_code: attempt.error_code ?? null,
    response_excerpt: attempt.response_excerpt ?? null,
    response_headers: headersOf(attempt),
    trigger: attempt.trigger,
    hint: failureHint(attempt, webhook.secret_rotated_at) ?? null,
  }));
  const { body, shadow } = delivery;
  const item = toListItem(delivery, webhook, now);
  return { ...item, payload: parseJsonExactly(body), attempts, ...(shadow && { shadow }) };
}

const headersOf = ({ response_header_pairs: pairs, response_headers }: Attempt): Record<string, string> | null =>
  pairs ? Object.fromEntries(pairs) : (response_headers ?? null);

const listRange = "must be later than since";

const listCursorText = z.string(listCursorRule).check(z.regex(new RegExp(LIST_CURSOR_PATTERN), listCursorRule));

/** Query parameters of the delivery lists. */
export const listQuery = z.pipe(
  page(
    fields({
      event: z.optional(eventName(subscribableNames)),
      status: z.optional(z.enum(deliveryStatuses, `must be one of ${deliveryStatuses.join(", ")}`)),
      deployment_id: z.optional(uuid),
      error_code: z.optional(z.enum(failureCodes, `must be one of ${failureCodes.join(", ")}`)),
      since: z.optional(timeText),
      until: z.optional(timeText),
      limit: pageFields.limit,
      cursor: z.optional(listCursorText),
    }).check(
      z.refine(({ since, until }) => !since || !until || new Date(since) < new Date(until), {
        path: ["until"],
        error: listRange,
      }),
    ),
  ),
  z.transform(({ since, until, event, status, deployment_id, error_code, limit, cursor, given }) => ({
    filters: {
      event,
      status,
      deployment_id,
      error_code,
      since: since === undefined ? undefined : new Date(since),
      until: until === undefined ? undefined : new Date(until),
    },
    limit,
    cursor,
    given,
  })),
);

/** What a recovery sends: what is over, and what waits for its next attempt. */
export const recoveredStatuses = [
  "failed",
  "held",
  "pending",
  "shadowed",
  "superseded",
] as const satisfies DeliveryStatus[];
export type RecoveredStatus = (typeof recoveredStatuses)[number];

/**
 * Body of a recovery: the deliveries of events since a time, optionally with one status only, optionally from the cursor
 * on at which an earlier call stopped.
 */
export const recoverInput = fields({
  since: isoTime,
  status: z.optional(z.enum(recoveredStatuses, `must be one of ${recoveredStatuses.join(", ")}`)),
  cursor: z.optional(listCursorText),
});

/** Converts the outcome of one call of a recovery. @param cursor absent when no delivery is left to look at */
export function toRecoveryResult(count: number, cursor: string | undefined) {
  return { count, complete: cursor === undefined, next_cursor: cursor ?? null };
}

/**
 * Input of a replay: a project, the time since which its events were received, and where to go on. A time in the future
 * would select nothing, so it is taken for a mistake.
 */
export const replayInput = (now: Date) =>
  fields({
    project_id: uuid,
    since: isoTime.check(z.refine((since: Date) => since <= now, "must not be in the future")),
    cursor: z.optional(uuid),
  });

/** Body of a test delivery: the event to simulate, and fields of its data. */
export const testDeliveryInput = fields({
  event: z.optional(eventName(subscribableNames)),
  data: z.optional(
    z.record(z.string(), z.unknown(), orRequired("must be a JSON object")).check(
      // Some parsers, such as that of Go, read any case of the name.
      z.refine((data) => !Object.keys(data).some((name) => /^test$/iu.test(name)), "must not have test, which is true"),
    ),
  ),
});

/**
 * Returns the event of a test delivery: by default the first one to which the webhook subscribes.
 * @throws ApiError `validation_error` for an event to which it does not subscribe
 */
export function testedEvent(
  { event }: z.output<typeof testDeliveryInput>,
  { events }: Pick<Webhook, "events">,
): WebhookEventName {
  const names = subscribedNames(events);
  const name = event ?? names[0];
  if (name !== undefined && names.includes(name)) return name;
  const rule = names.length > 0 ? `: ${names.join(", ")}` : ", and the service has none of those: change them first";
  throw invalidField("event", `must be an event to which the webhook subscribes${rule}`);
}
