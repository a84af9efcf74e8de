import type { Context } from "aws-lambda";
import { type DeploymentEvent, eventIdOf } from "../../foundation/events/deployment-event.ts";
import { parseDeploymentEvent } from "../../foundation/events/parse-deployment-event.ts";
import { log } from "../../foundation/platform/log.ts";
import { inBatches, inParallel } from "../../foundation/platform/parallel.ts";
import { parse } from "../../foundation/schema/input.ts";
import { receives } from "../../webhooks/webhook/event-filter.ts";
import { requireNotSuspended } from "../../webhooks/webhook/suspension.ts";
import * as suspensions from "../../webhooks/webhook/suspension-store.ts";
import * as webhooks from "../../webhooks/webhook/webhook-store.ts";
import * as events from "../feed/event-store.ts";
import { putBack } from "../line/backlog.ts";
import { replayInput } from "../log/delivery-presenter.ts";
import { planDelivery, store } from "./plan-delivery.ts";

/** Size of a group: events whose deliveries, at most 500, are planned and enqueued together. */
const EVENTS_AT_ONCE = 25;
const PARALLEL_WRITES = 25;
/** With less time left, no group is begun: one takes seconds when DynamoDB is slow. */
const MIN_REMAINING_MS = 20_000;

export interface ReplayResult {
  /** Number of events since the given time that were looked at. */
  events: number;
  /** Number of deliveries that were missing. They are pending, or held when their webhook is disabled. */
  deliveries: number;
  /** Number of events whose row is damaged. The log has their ids. */
  unreadable: number;
  /** The `cursor` of the call that continues; null when all events were looked at. */
  next_cursor: string | null;
  complete: boolean;
}

/**
 * Creates the deliveries of a project's events that have no row, as after a queue was purged: until its first attempt, a
 * delivery is only in a message. The row comes first, so a delivery that exists stays as it is, and a repeated call
 * creates nothing. The platform and operators invoke this function with IAM credentials.
 * @param input `{project_id, since, cursor}`: `since` applies to the time at which an event was received; `cursor` is
 *   the `next_cursor` of the call before, absent for the first call
 * @throws ApiError `validation_error`, or `project_suspended`; or the error of DynamoDB: repeat the call
 */
export async function handler(
  input: unknown,
  context: Pick<Context, "getRemainingTimeInMillis">,
): Promise<ReplayResult> {
  const { project_id, since, cursor } = parse(replayInput(new Date()), input);
  requireNotSuspended(await suspensions.projectState(project_id));
  const count = { events: 0, deliveries: 0, unreadable: 0 };
  let next: string | undefined;
  for await (const { rows, ...position } of groupsOf(project_id, since, cursor)) {
    const received = rows.flatMap((row) => readEvent(row, project_id) ?? []);
    count.deliveries += await createMissing(project_id, received);
    count.events += rows.length;
    count.unreadable += rows.length - received.length;
    next = position.next;
    if (context.getRemainingTimeInMillis() < MIN_REMAINING_MS) break;
  }
  const complete = next === undefined;
  log.info("replay", { project_id, since: since.toISOString(), ...count, complete });
  return { ...count, next_cursor: next ?? null, complete };
}

/** Yields the events in groups. `next` is the cursor after the group, absent after the last one. */
async function* groupsOf(projectId: string, since: Date, cursor: string | undefined) {
  let after = cursor;
  do {
    const page = await events.findReceived(projectId, since, new Date(), after);
    const groups = inBatches(page.events, EVENTS_AT_ONCE);
    // The last one may be empty: a page without events is a group too, because the time may end there.
    const last = groups.pop() ?? [];
    for (const rows of groups) yield { rows, next: rows.at(-1)?.id };
    yield { rows: last, next: page.next };
    after = page.next;
  } while (after !== undefined);
}

/** An event with the time at which SQS received it. */
type Received = { event: DeploymentEvent; receivedAt: Date };

/** @returns undefined when the stored body is not the event of that id: its deliveries would get other ids */
function readEvent({ id, body, received_at }: events.ReceivedEvent, project_id: string): Received | undefined {
  const message = parseDeploymentEvent(body);
  const isIntact = message.ok && eventIdOf(message.event) === id;
  if (isIntact) return { event: message.event, receivedAt: new Date(received_at) };
  const reason = message.ok ? "the body belongs to another event" : message.reason;
  log.error("event not replayed", new Error(reason), { project_id, event_id: id });
  return undefined;
}

/**
 * Creates the missing deliveries of events, and puts back the places of those that wait.
 * @returns their number
 * @throws the first error, after all calls have ended
 */
async function createMissing(projectId: string, received: Received[]): Promise<number> {
  if (received.length === 0) return 0;
  const existing = await webhooks.list(projectId);
  const wanted = received.flatMap(({ event, receivedAt }) =>
    existing
      .filter((webhook) => receives(webhook, event) && new Date(webhook.created_at) <= receivedAt)
      .map((webhook) => ({ event, webhook, receivedAt })),
  );
  const planned = await inParallel(wanted, PARALLEL_WRITES, ({ event, webhook, receivedAt }) =>
    planDelivery(event, webhook, receivedAt, "perhaps"),
  );
  const known = planned.filter(({ kind }) => kind === "known");
  await inParallel(known, PARALLEL_WRITES, ({ webhook, delivery }) => putBack(webhook, delivery));
  return store(planned);
}
