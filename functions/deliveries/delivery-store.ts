import { GetCommand, PutCommand, UpdateCommand } from "@aws-sdk/lib-dynamodb";
import { dynamo, isConditionFailed } from "../platform/aws.ts";
import { tableName } from "../platform/env.ts";
import { ApiError } from "../platform/errors.ts";
import { inParallel } from "../platform/parallel.ts";
import { type Attempt, type Delivery, type DeliveryStatus, dueNow, expiresAt, MAX_ATTEMPTS } from "./delivery.ts";

/*
 * Invariant: a row is pending if and only if it is in the `due` index. So whatever dies, the sweep finds what is unfinished.
 */

const keyOf = ({ webhook_id, id }: Pick<Delivery, "webhook_id" | "id">) => ({
  TableName: tableName("deliveries"),
  Key: { webhook_id, id },
});

/** @returns false when the row exists: the event was here before */
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

export async function find(webhook_id: string, id: string): Promise<Delivery | undefined> {
  const { Item } = await dynamo().send(new GetCommand({ ...keyOf({ webhook_id, id }), ConsistentRead: true }));
  return Item as Delivery | undefined;
}

/** @throws ApiError `not_found` when the webhook has no such delivery */
export async function get(webhookId: string, id: string): Promise<Delivery> {
  const delivery = await find(webhookId, id);
  if (!delivery) throw noSuchDelivery();
  return delivery;
}

const noSuchDelivery = (cause?: unknown) => new ApiError("not_found", "There is no such delivery.", { cause });

/**
 * Makes a delivery pending once more, whatever it was, with an attempt due now and the schedule from its start.
 * @throws ApiError `not_found`, or `conflict` when it has been attempted too often
 */
export async function reschedule(webhook_id: string, id: string, now: Date, graceSeconds: number): Promise<Delivery> {
  const reopened = await rescheduleIf("attribute_exists(id)", {}, { webhook_id, id }, "redeliver", now, graceSeconds);
  if (reopened) return reopened;
  if (!(await find(webhook_id, id))) throw noSuchDelivery();
  throw new ApiError("conflict", `This delivery has been attempted ${MAX_ATTEMPTS} times or more. No more are made.`);
}

const PARALLEL_WRITES = 50;

/** Makes those of the deliveries pending that have not changed meanwhile, nor been attempted too often. */
export async function rescheduleAll(ended: Delivery[], graceSeconds: number): Promise<Delivery[]> {
  const reopened = await inParallel(ended, PARALLEL_WRITES, (delivery) => {
    const unchanged = { ":seen": delivery.status };
    return rescheduleIf("#status = :seen", unchanged, delivery, "recover", new Date(), graceSeconds);
  });
  return reopened.flatMap((delivery) => delivery ?? []);
}

async function rescheduleIf(
  condition: string,
  values: Record<string, unknown>,
  key: Pick<Delivery, "webhook_id" | "id">,
  trigger: "redeliver" | "recover",
  now: Date,
  graceSeconds: number,
): Promise<Delivery | undefined> {
  const { next_attempt_at, due_at, due_shard } = dueNow(key.id, now, graceSeconds);
  try {
    const { Attributes } = await dynamo().send(
      new UpdateCommand({
        ...keyOf(key),
        UpdateExpression:
          "SET #status = :pending, #trigger = :trigger, requested_at = :nextAttemptAt, schedule_from = attempt_count, " +
          "next_attempt_at = :nextAttemptAt, due_at = :dueAt, due_shard = :dueShard, expires_at = :expiresAt",
        ConditionExpression: `${condition} AND attempt_count < :max`,
        ExpressionAttributeNames: { "#status": "status", "#trigger": "trigger" },
        ExpressionAttributeValues: {
          ...values,
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

/** What an attempt leads to: another one, planned for `nextAttemptAt`, or an end. */
export type NextState =
  | { status: "pending"; nextAttemptAt: string; dueAt: string }
  | { status: Exclude<DeliveryStatus, "pending"> };

/**
 * Records an attempt and what follows from it, in one write.
 * @returns false when this attempt was recorded before, by somebody who held the same message, or when somebody asked for
 * another one while it was made
 */
export function recordAttempt(delivery: Delivery, attempt: Attempt, next: NextState): Promise<boolean> {
  return changePending(delivery, next, {
    set: ["attempt_count = :number", "attempts = list_append(if_not_exists(attempts, :none), :attempts)"],
    // Why this attempt was made stands with it now; the next one is the schedule's.
    remove: ["#trigger"],
    values: { ":number": attempt.number, ":attempts": [attempt], ":none": [] },
  });
}

/**
 * Records an attempt during which somebody asked for another one. Whatever came of it, that one is due, and begins the
 * schedule.
 * @returns false when nobody did
 */
export function recordOvertaken(delivery: Delivery, attempt: Attempt): Promise<boolean> {
  return updateIf("NOT", delivery, {
    expression:
      "SET attempt_count = :number, schedule_from = :number, attempts = list_append(if_not_exists(attempts, :none), :attempts)",
    values: { ":number": attempt.number, ":attempts": [attempt], ":none": [] },
  });
}

/** Puts the next attempt off. It counts for nothing. */
export function postpone(delivery: Delivery, nextAttemptAt: string, dueAt: string): Promise<boolean> {
  return changePending(delivery, { status: "pending", nextAttemptAt, dueAt });
}

/** Ends a delivery without an attempt. */
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
  return updateIf("", delivery, {
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

/**
 * Changes a row that is pending as it was seen, and for which nobody has asked for an attempt since. With `NOT`, one for
 * which somebody has.
 */
async function updateIf(not: "" | "NOT", delivery: Delivery, { expression, names, values }: Update): Promise<boolean> {
  const { requested_at, attempt_count } = delivery;
  const hasNoNewRequest =
    requested_at === undefined ? "attribute_not_exists(requested_at)" : "requested_at = :requestedAt";
  try {
    await dynamo().send(
      new UpdateCommand({
        ...keyOf(delivery),
        UpdateExpression: expression,
        ConditionExpression: `#status = :pending AND attempt_count = :before AND ${not} ${hasNoNewRequest}`,
        ExpressionAttributeNames: { "#status": "status", ...names },
        ExpressionAttributeValues: {
          ...values,
          ":pending": "pending",
          ":before": attempt_count,
          ":requestedAt": requested_at,
        },
      }),
    );
    return true;
  } catch (error) {
    if (isConditionFailed(error)) return false;
    throw error;
  }
}
