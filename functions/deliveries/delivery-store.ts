import { GetCommand, PutCommand, UpdateCommand } from "@aws-sdk/lib-dynamodb";
import { dynamo, isConditionFailed } from "../platform/aws.ts";
import { tableName } from "../platform/env.ts";
import { ApiError } from "../platform/errors.ts";
import { inParallel } from "../platform/parallel.ts";
import {
  type Attempt,
  type Delivery,
  type DeliveryStatus,
  expiresAt,
  MAX_ATTEMPTS,
  nextAttemptNow,
} from "./delivery.ts";

/*
 * Invariant: a row is pending if and only if it is in the `due` index. After any crash the sweep finds the unfinished
 * rows.
 */

const keyOf = ({ webhook_id, id }: Pick<Delivery, "webhook_id" | "id">) => ({
  TableName: tableName("deliveries"),
  Key: { webhook_id, id },
});

/**
 * Inserts a delivery.
 * @returns false when the row already exists, because the event is a duplicate
 */
export async function insert(delivery: Delivery): Promise<boolean> {
  try {
    await dynamo().send(
      new PutCommand({
        TableName: tableName("deliveries"),
        Item: delivery,
        ConditionExpression: "attribute_not_exists(id)",
      }),
    );
    return true;
  } catch (error) {
    if (isConditionFailed(error)) return false;
    throw error;
  }
}

/** Returns a delivery, or undefined when the webhook has no delivery with this id. Strongly consistent. */
export async function find(webhook_id: string, id: string): Promise<Delivery | undefined> {
  const { Item } = await dynamo().send(new GetCommand({ ...keyOf({ webhook_id, id }), ConsistentRead: true }));
  return Item as Delivery | undefined;
}

/**
 * Returns a delivery. Strongly consistent.
 * @throws ApiError `not_found` when the webhook has no delivery with this id
 */
export async function get(webhookId: string, id: string): Promise<Delivery> {
  const delivery = await find(webhookId, id);
  if (!delivery) throw noSuchDelivery();
  return delivery;
}

const noSuchDelivery = () => new ApiError("not_found", "No delivery with this id exists.");

/**
 * Makes a delivery of any status pending again. An attempt is due now, and the retry schedule restarts. A delivery
 * whose redelivery is already due stays unchanged, so concurrent calls lead to one attempt.
 * @returns the row, and whether its attempt is to be enqueued
 * @throws ApiError `not_found`, or `conflict` when the delivery has reached the maximum number of attempts
 */
export async function reschedule(
  webhook_id: string,
  id: string,
  now: Date,
  graceSeconds: number,
): Promise<{ delivery: Delivery; isNew: boolean }> {
  const delivery = await rescheduleWhen(redeliveryIsNotDue, { webhook_id, id }, "redeliver", now, graceSeconds);
  if (delivery) return { delivery, isNew: true };
  const current = await get(webhook_id, id);
  if (current.status === "pending" && current.trigger === "redeliver") return { delivery: current, isNew: false };
  if (current.attempt_count >= MAX_ATTEMPTS) {
    throw new ApiError(
      "conflict",
      `The delivery has reached the maximum of ${MAX_ATTEMPTS} attempts. It cannot be sent again.`,
    );
  }
  // The attempt of an earlier redelivery was recorded between the write and the read.
  return reschedule(webhook_id, id, now, graceSeconds);
}

const PARALLEL_WRITES = 50;

/**
 * Makes deliveries pending again. Skips those whose status has changed since they were read, and those that have
 * reached the maximum number of attempts.
 * @returns the rescheduled deliveries, in the order given
 */
export async function rescheduleAll(finished: Delivery[], graceSeconds: number): Promise<Delivery[]> {
  const rescheduled = await inParallel(finished, PARALLEL_WRITES, (delivery) =>
    rescheduleWhen(statusIsUnchanged(delivery), delivery, "recover", new Date(), graceSeconds),
  );
  return rescheduled.flatMap((delivery) => delivery ?? []);
}

/** A condition expression and the values that it uses. `#status` is defined wherever a condition is used. */
interface Condition {
  expression: string;
  values: Record<string, unknown>;
}

/** `:pending` and `:trigger` are values of the update. */
const redeliveryIsNotDue: Condition = {
  expression: "attribute_exists(id) AND NOT (#status = :pending AND #trigger = :trigger)",
  values: {},
};

const statusIsUnchanged = (read: Delivery): Condition => ({
  expression: "#status = :readStatus",
  values: { ":readStatus": read.status },
});

async function rescheduleWhen(
  condition: Condition,
  key: Pick<Delivery, "webhook_id" | "id">,
  trigger: "redeliver" | "recover",
  now: Date,
  graceSeconds: number,
): Promise<Delivery | undefined> {
  const { next_attempt_at, due_at, due_shard } = nextAttemptNow(key.id, now, graceSeconds);
  try {
    const { Attributes } = await dynamo().send(
      new UpdateCommand({
        ...keyOf(key),
        UpdateExpression:
          "SET #status = :pending, #trigger = :trigger, requested_at = :nextAttemptAt, " +
          "attempts_before_schedule = attempt_count, next_attempt_at = :nextAttemptAt, due_at = :dueAt, due_shard = :dueShard, expires_at = :expiresAt",
        ConditionExpression: `${condition.expression} AND attempt_count < :max`,
        ExpressionAttributeNames: { "#status": "status", "#trigger": "trigger" },
        ExpressionAttributeValues: {
          ...condition.values,
          ":pending": "pending",
          ":trigger": trigger,
          ":nextAttemptAt": next_attempt_at,
          ":dueAt": due_at,
          ":dueShard": due_shard,
          ":max": MAX_ATTEMPTS,
          ":expiresAt": expiresAt(now),
        },
        ReturnValues: "ALL_NEW",
      }),
    );
    return Attributes as Delivery;
  } catch (error) {
    if (isConditionFailed(error)) return undefined;
    throw error;
  }
}

/** The state of a delivery after an attempt: pending with the next attempt at `nextAttemptAt`, or finished. */
export type NextState =
  | { status: "pending"; nextAttemptAt: string; dueAt: string }
  | { status: Exclude<DeliveryStatus, "pending"> };

/**
 * Records an attempt and the next state of its delivery in one write.
 * @returns false when this attempt was recorded before by another process with the same message, or when a new attempt
 *   was requested while it was in flight
 */
export function recordAttempt(delivery: Delivery, attempt: Attempt, next: NextState): Promise<boolean> {
  return changePending(delivery, next, {
    set: ["attempt_count = :number", "attempts = list_append(if_not_exists(attempts, :none), :attempts)"],
    // The trigger of this attempt is stored with it. The next attempt is made by the schedule.
    remove: ["#trigger"],
    values: { ":number": attempt.number, ":attempts": [attempt], ":none": [] },
  });
}

/**
 * Records an attempt during which a new one was requested. The new attempt is due whatever the outcome of this one is,
 * and restarts the retry schedule.
 * @returns false when no new attempt was requested, or when this attempt was recorded before
 */
export function recordOvertaken(delivery: Delivery, attempt: Attempt): Promise<boolean> {
  return updateWhen(pendingWithNewRequest(delivery), delivery, {
    expression:
      "SET attempt_count = :number, attempts_before_schedule = :number, " +
      "attempts = list_append(if_not_exists(attempts, :none), :attempts)",
    values: { ":number": attempt.number, ":attempts": [attempt], ":none": [] },
  });
}

/**
 * Postpones the next attempt without counting one.
 * @returns false when the delivery is no longer as read: see `pendingWithoutNewRequest`
 */
export function postpone(delivery: Delivery, nextAttemptAt: string, dueAt: string): Promise<boolean> {
  return changePending(delivery, { status: "pending", nextAttemptAt, dueAt });
}

/**
 * Finishes a delivery without an attempt.
 * @returns false when the delivery is no longer as read: see `pendingWithoutNewRequest`
 */
export function finishWithoutAttempt(delivery: Delivery, status: "held" | "cancelled"): Promise<boolean> {
  return changePending(delivery, { status });
}

function changePending(
  delivery: Delivery,
  next: NextState,
  { set = [], remove = [], values = {} }: { set?: string[]; remove?: string[]; values?: Record<string, unknown> } = {},
): Promise<boolean> {
  const isPending = next.status === "pending";
  const sets = [
    "#status = :status",
    ...(isPending ? ["next_attempt_at = :nextAttemptAt", "due_at = :dueAt"] : []),
    ...set,
  ];
  const removes = [...(isPending ? [] : ["next_attempt_at", "due_shard", "due_at"]), ...remove];
  return updateWhen(pendingWithoutNewRequest(delivery), delivery, {
    expression: `SET ${sets.join(", ")}${removes.length > 0 ? ` REMOVE ${removes.join(", ")}` : ""}`,
    names: remove.includes("#trigger") ? { "#trigger": "trigger" } : {},
    values: {
      ...values,
      ":status": next.status,
      ...(isPending && { ":nextAttemptAt": next.nextAttemptAt, ":dueAt": next.dueAt }),
    },
  });
}

interface Update {
  expression: string;
  names?: Record<string, string>;
  values: Record<string, unknown>;
}

/*
 * Conditions of the sender's writes. The sender reads the row, sends the request, and writes the row. In between, the
 * API may request another attempt (redeliver or recover), which changes `requested_at`:
 *
 *   sender  ──── read ─────── send ─────── write ────>
 *   API     ───────── (another attempt?) ────────────>
 *
 *   pendingWithoutNewRequest   requested_at is as read   no attempt was requested in between
 *   pendingWithNewRequest      requested_at has changed  an attempt was requested in between
 *
 * With both, `attempt_count` is as read. If it has changed, another process has recorded this attempt.
 */
const pendingWithoutNewRequest = (read: Delivery): Condition =>
  read.requested_at === undefined
    ? pendingAsRead(read, "attribute_not_exists(requested_at)")
    : pendingAsRead(read, "requested_at = :readRequest", { ":readRequest": read.requested_at });

const pendingWithNewRequest = (read: Delivery): Condition =>
  read.requested_at === undefined
    ? pendingAsRead(read, "attribute_exists(requested_at)")
    : pendingAsRead(read, "requested_at <> :readRequest", { ":readRequest": read.requested_at });

const pendingAsRead = (read: Delivery, request: string, values: Condition["values"] = {}): Condition => ({
  expression: `#status = :pending AND attempt_count = :readCount AND ${request}`,
  values: { ":pending": "pending", ":readCount": read.attempt_count, ...values },
});

/** Updates a delivery if the condition is true. Returns whether it was updated. */
async function updateWhen(
  condition: Condition,
  delivery: Delivery,
  { expression, names, values }: Update,
): Promise<boolean> {
  try {
    await dynamo().send(
      new UpdateCommand({
        ...keyOf(delivery),
        UpdateExpression: expression,
        ConditionExpression: condition.expression,
        ExpressionAttributeNames: { "#status": "status", ...names },
        ExpressionAttributeValues: { ...values, ...condition.values },
      }),
    );
    return true;
  } catch (error) {
    if (isConditionFailed(error)) return false;
    throw error;
  }
}
