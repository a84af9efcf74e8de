import { GetCommand, PutCommand, UpdateCommand } from "@aws-sdk/lib-dynamodb";
import { dynamo, isConditionFailed, storedValue } from "../platform/aws.ts";
import { tableName } from "../platform/env.ts";
import { ApiError } from "../platform/errors.ts";
import { inParallel } from "../platform/parallel.ts";
import {
  type Attempt,
  type Delivery,
  type DeliveryStatus,
  type Due,
  expiresAt,
  MAX_ATTEMPTS,
  nextAttemptNow,
  type PendingDelivery,
  parkingShardOf,
  withAttempt,
} from "./delivery.ts";

/*
 * Invariant: a row is pending if and only if it is in the `due` index. After any crash the sweep, or the wake-up of a
 * parked webhook, finds the unfinished rows.
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
  const { created_at, sending_id, due_at } = delivery;
  try {
    await dynamo().send(
      new PutCommand({
        TableName: tableName("deliveries"),
        Item: delivery,
        ConditionExpression: "attribute_not_exists(id)",
        ReturnValuesOnConditionCheckFailure: "ALL_OLD",
      }),
    );
    return true;
  } catch (error) {
    if (!isConditionFailed(error)) throw error;
    // Two receives of a message insert the same delivery, but plan it for times of their own.
    const isOwnWrite =
      storedValue(error, "created_at") === created_at &&
      storedValue(error, "sending_id") === sending_id &&
      storedValue(error, "due_at") === due_at;
    return isOwnWrite && storedValue(error, "attempt_count") === String(delivery.attempt_count);
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
    rescheduleWhen(statusIsUnchanged(delivery), delivery, "recover", new Date(), graceSeconds, delivery),
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
  read?: Delivery,
): Promise<Delivery | undefined> {
  const { next_attempt_at, due_at, due_shard } = nextAttemptNow(key.id, now, graceSeconds);
  try {
    const { Attributes } = await dynamo().send(
      new UpdateCommand({
        ...keyOf(key),
        UpdateExpression:
          "SET #status = :pending, #trigger = :trigger, requested_at = :nextAttemptAt, " +
          "attempts_before_schedule = attempt_count, next_attempt_at = :nextAttemptAt, due_at = :dueAt, due_shard = :dueShard, expires_at = :expiresAt REMOVE handovers",
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
        ReturnValuesOnConditionCheckFailure: "ALL_OLD",
      }),
    );
    return Attributes as Delivery;
  } catch (error) {
    if (!isConditionFailed(error)) throw error;
    const isOwnWrite = storedValue(error, "requested_at") === next_attempt_at;
    if (!isOwnWrite || storedValue(error, "status") !== "pending") return undefined;
    if (!read) return find(key.webhook_id, key.id);
    return { ...read, status: "pending", trigger, requested_at: next_attempt_at, next_attempt_at, due_at, due_shard };
  }
}

/** The state of a delivery after an attempt: pending with the next attempt at `nextAttemptAt`, or finished. */
export type NextState =
  | { status: "pending"; nextAttemptAt: string; due: Due }
  | { status: Exclude<DeliveryStatus, "pending"> };

/**
 * Claims the next attempt of a pending row for one sender, for as long as an attempt can take. While it lasts, no other
 * sender sends this attempt: the row may have several messages.
 * @param sendingId random id of the caller's attempt
 * @param until end of the claim, in ISO 8601
 * @returns false when another sender has the claim, or the row is no longer as read
 */
export function claimSending(read: Delivery, sendingId: string, now: Date, until: string): Promise<boolean> {
  const { expression, values } = pendingWithoutNewRequest(read);
  return updateWhen(
    {
      expression: `${expression} AND (attribute_not_exists(sending_until) OR sending_until <= :now)`,
      values: { ...values, ":now": now.toISOString() },
    },
    read,
    {
      expression: "SET sending_until = :until, sending_id = :sendingId",
      values: { ":until": until, ":sendingId": sendingId },
    },
    (stored) => stored("sending_id") === sendingId && stored("sending_until") === until,
  );
}

/**
 * Inserts a delivery together with its first attempt, in one write.
 * @param sendingId random id of the caller's attempt
 * @returns false when a row already exists
 */
export function insertAttempted(
  delivery: PendingDelivery,
  attempt: Attempt,
  next: NextState,
  sendingId: string,
): Promise<boolean> {
  const { next_attempt_at, due_at, due_shard, trigger, sending_until, ...unplanned } = delivery;
  return insert({
    ...unplanned,
    status: next.status,
    attempt_count: attempt.number,
    attempts: [attempt],
    sending_id: sendingId,
    ...(next.status === "pending" && { next_attempt_at: next.nextAttemptAt, ...next.due }),
  });
}

/**
 * Records an attempt and the next state of its delivery in one write.
 * @param sendingId random id of the caller's attempt
 * @returns false when another attempt was recorded first, or when a new attempt was requested while this one was in
 *   flight
 */
export function recordAttempt(
  delivery: Delivery,
  attempt: Attempt,
  next: NextState,
  sendingId: string,
): Promise<boolean> {
  return changePending(
    delivery,
    next,
    {
      set: [setAttempts, "attempt_count = :number", "sending_id = :sendingId"],
      // The trigger of this attempt is stored with it. The next attempt is made by the schedule.
      remove: ["#trigger", "sending_until", "handovers"],
      values: { ...attemptValues(delivery, attempt, attempt.number), ":sendingId": sendingId },
    },
    isRecordedBy(sendingId, attempt.number),
  );
}

const setAttempts = "attempts = :attempts";

/** The condition of each write is that the row has as many attempts as `read`, so none is lost. */
const attemptValues = (read: Delivery, attempt: Attempt, number: number) => ({
  ":number": number,
  ":attempts": withAttempt(read, { ...attempt, number }),
});

type StoredRow = (attribute: string) => string | undefined;

const isRecordedBy = (sendingId: string, count: number) => (stored: StoredRow) =>
  stored("sending_id") === sendingId && stored("attempt_count") === String(count);

/**
 * Records an attempt during which a new one was requested. The new attempt is due whatever the outcome of this one is,
 * and restarts the retry schedule.
 * @returns false when no new attempt was requested, or when another attempt was recorded first
 */
export function recordOvertaken(delivery: Delivery, attempt: Attempt, sendingId: string): Promise<boolean> {
  return updateWhen(
    pendingWithNewRequest(delivery),
    delivery,
    {
      expression: `SET attempt_count = :number, attempts_before_schedule = :number, ${setAttempts}, sending_id = :sendingId REMOVE sending_until, handovers`,
      values: { ...attemptValues(delivery, attempt, attempt.number), ":sendingId": sendingId },
    },
    isRecordedBy(sendingId, attempt.number),
  );
}

/**
 * Adds an attempt to a row in which another sender has recorded one meanwhile. A success ends the delivery unless a new
 * attempt was requested; a failure changes neither its status nor the rest of its retry schedule.
 * @param read the row as it is now
 * @returns the row after the write; undefined when it changed since it was read
 */
export async function recordAfterAnother(
  read: Delivery,
  attempt: Attempt,
  isFinal: boolean,
  sendingId: string,
): Promise<Delivery | undefined> {
  const number = read.attempt_count + 1;
  const sets = [
    setAttempts,
    "attempt_count = :number",
    "sending_id = :sendingId",
    ...(isFinal ? ["#status = :succeeded"] : []),
    ...(!isFinal && read.status === "pending"
      ? ["attempts_before_schedule = if_not_exists(attempts_before_schedule, :zero) + :one"]
      : []),
  ];
  const removes = isFinal ? " REMOVE next_attempt_at, due_shard, due_at, sending_until, handovers" : "";
  const condition = asRead(read);
  const isRecorded = await updateWhen(
    condition,
    read,
    {
      expression: `SET ${sets.join(", ")}${removes}`,
      values: {
        ...attemptValues(read, attempt, number),
        ":sendingId": sendingId,
        ...(isFinal && { ":succeeded": "succeeded" }),
        ...(!isFinal && read.status === "pending" && { ":zero": 0, ":one": 1 }),
      },
    },
    isRecordedBy(sendingId, number),
  );
  if (!isRecorded) return undefined;
  return { ...read, attempt_count: number, status: isFinal ? "succeeded" : read.status };
}

/**
 * Moves a pending row to the parking of its webhook, without counting an attempt.
 * @param probeAt when the webhook is probed next: the time that users see
 * @returns false when the delivery is no longer as read: see `pendingWithoutNewRequest`
 */
export function park(delivery: Delivery, probeAt: string): Promise<boolean> {
  const { webhook_id, next_attempt_at = "" } = delivery;
  // The order of the parked rows is that of their planned attempts.
  const due = { due_shard: parkingShardOf(webhook_id), due_at: next_attempt_at };
  return changePending(delivery, { status: "pending", nextAttemptAt: probeAt, due }, { remove: ["handovers"] });
}

/** Inserts a delivery into the parking of its webhook. @returns false when the row already exists */
export function insertParked(delivery: PendingDelivery, probeAt: string): Promise<boolean> {
  const { webhook_id, next_attempt_at } = delivery;
  return insert({
    ...delivery,
    next_attempt_at: probeAt,
    due_shard: parkingShardOf(webhook_id),
    due_at: next_attempt_at,
  });
}

/**
 * Cancels a delivery of a deleted webhook.
 * @returns false when the delivery is no longer as read: see `pendingWithoutNewRequest`
 */
export const cancel = (delivery: Delivery): Promise<boolean> =>
  changePending(delivery, { status: "cancelled" }, { remove: ["sending_until", "handovers"] });

/**
 * Holds a delivery of a webhook that is disabled or whose project is suspended. To be called by `hold` in hold.ts only.
 * @returns false when the delivery is no longer as read: see `pendingWithoutNewRequest`
 */
export const hold = (delivery: Delivery): Promise<boolean> =>
  changePending(delivery, { status: "held" }, { remove: ["sending_until", "handovers"] });

function changePending(
  delivery: Delivery,
  next: NextState,
  { set = [], remove = [], values = {} }: { set?: string[]; remove?: string[]; values?: Record<string, unknown> } = {},
  isDone?: (stored: StoredRow) => boolean,
): Promise<boolean> {
  const isPending = next.status === "pending";
  const sets = [
    "#status = :status",
    ...(isPending ? ["next_attempt_at = :nextAttemptAt", "due_at = :dueAt", "due_shard = :dueShard"] : []),
    ...set,
  ];
  const removes = [...(isPending ? [] : ["next_attempt_at", "due_shard", "due_at"]), ...remove];
  return updateWhen(
    pendingWithoutNewRequest(delivery),
    delivery,
    {
      expression: `SET ${sets.join(", ")}${removes.length > 0 ? ` REMOVE ${removes.join(", ")}` : ""}`,
      names: remove.includes("#trigger") ? { "#trigger": "trigger" } : {},
      values: {
        ...values,
        ":status": next.status,
        ...(isPending && {
          ":nextAttemptAt": next.nextAttemptAt,
          ":dueAt": next.due.due_at,
          ":dueShard": next.due.due_shard,
        }),
      },
    },
    isDone,
  );
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
 * With both, `attempt_count` is as read. If it has changed, another sender has recorded an attempt.
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

/** Status, number of attempts and request are as read. */
const asRead = (read: Delivery): Condition => {
  const { expression, values } = pendingWithoutNewRequest(read);
  return { expression, values: { ...values, ":pending": read.status } };
};

/**
 * Updates a delivery if the condition is true.
 * @param isDone tells from the stored row whether this very write has taken effect before (see `storedValue`)
 * @returns whether it was updated
 */
async function updateWhen(
  condition: Condition,
  delivery: Delivery,
  { expression, names, values }: Update,
  isDone: (stored: StoredRow) => boolean = () => false,
): Promise<boolean> {
  try {
    await dynamo().send(
      new UpdateCommand({
        ...keyOf(delivery),
        UpdateExpression: expression,
        ConditionExpression: condition.expression,
        ExpressionAttributeNames: { "#status": "status", ...names },
        ExpressionAttributeValues: { ...values, ...condition.values },
        ReturnValuesOnConditionCheckFailure: "ALL_OLD",
      }),
    );
    return true;
  } catch (error) {
    if (isConditionFailed(error)) return isDone((attribute) => storedValue(error, attribute));
    throw error;
  }
}
