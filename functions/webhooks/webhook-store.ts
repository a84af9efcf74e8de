import { GetCommand, QueryCommand, UpdateCommand } from "@aws-sdk/lib-dynamodb";
import { ConditionsFailed, dynamo, isConditionFailed, transact } from "../platform/aws.ts";
import { tableName } from "../platform/env.ts";
import { ApiError } from "../platform/errors.ts";
import { type DisabledReason, MAX_WEBHOOKS_PER_PROJECT, type Webhook, type WebhookPatch } from "./webhook.ts";

/** Sort key of the item that counts a project's webhooks. It sorts before every id. */
const COUNTER = "#count";

const keyOf = (project_id: string, id: string) => ({ TableName: tableName("webhooks"), Key: { project_id, id } });
const secretOf = (webhook_id: string) => ({ TableName: tableName("webhookSecrets"), Key: { webhook_id } });

/** @throws ApiError `webhook_limit_reached` when the project is at the cap, under concurrent creates too */
export async function insert(webhook: Webhook, secret: string): Promise<void> {
  try {
    await transact({
      counter: {
        Update: {
          ...keyOf(webhook.project_id, COUNTER),
          UpdateExpression: "ADD webhook_count :one",
          ConditionExpression: "attribute_not_exists(webhook_count) OR webhook_count < :cap",
          ExpressionAttributeValues: { ":one": 1, ":cap": MAX_WEBHOOKS_PER_PROJECT },
        },
      },
      webhook: {
        Put: { TableName: tableName("webhooks"), Item: webhook, ConditionExpression: "attribute_not_exists(id)" },
      },
      secret: {
        Put: { TableName: tableName("webhookSecrets"), Item: { webhook_id: webhook.id, current: secret } },
      },
    });
  } catch (error) {
    if (error instanceof ConditionsFailed && error.items.includes("counter")) {
      const message = `A project can have ${MAX_WEBHOOKS_PER_PROJECT} webhooks. Delete one that is no longer used.`;
      throw new ApiError("webhook_limit_reached", message, { cause: error });
    }
    throw error;
  }
}

/** The project's webhooks, oldest first. Strongly consistent: an event after a create finds the new webhook. */
export async function list(projectId: string): Promise<Webhook[]> {
  // One page holds them all: the cap keeps the list far below 1 MB.
  const { Items } = await dynamo().send(
    new QueryCommand({
      TableName: tableName("webhooks"),
      ConsistentRead: true,
      KeyConditionExpression: "project_id = :project AND id > :counter",
      ExpressionAttributeValues: { ":project": projectId, ":counter": COUNTER },
    }),
  );
  return (Items ?? []) as Webhook[];
}

export async function find(projectId: string, id: string): Promise<Webhook | undefined> {
  const { Item } = await dynamo().send(new GetCommand({ ...keyOf(projectId, id), ConsistentRead: true }));
  return Item as Webhook | undefined;
}

export const noSuchWebhook = (cause?: unknown) => new ApiError("not_found", "There is no such webhook.", { cause });

/** @throws ApiError `not_found` when the project has no such webhook */
export async function get(projectId: string, id: string): Promise<Webhook> {
  const webhook = await find(projectId, id);
  if (!webhook) throw noSuchWebhook();
  return webhook;
}

/**
 * Changes what is given. Enabling forgets why the webhook was disabled, and that it failed, as another URL does; to disable
 * one that is disabled keeps the reason it has.
 * @throws ApiError `not_found`
 */
export async function update(
  projectId: string,
  id: string,
  { url, events, enabled }: WebhookPatch,
  at: string,
): Promise<Webhook> {
  const set = [
    ...(url === undefined ? [] : ["#url = :url"]),
    ...(events === undefined ? [] : ["events = :events"]),
    ...(enabled === false
      ? ["disabled_at = if_not_exists(disabled_at, :at)", "disabled_reason = if_not_exists(disabled_reason, :manual)"]
      : []),
  ];
  // Another URL is another receiver: what the last one did says nothing about it.
  const forgotten = [
    ...(enabled === true ? ["disabled_at", "disabled_reason"] : []),
    ...(enabled === true || url !== undefined ? ["failing_since", "probe_at"] : []),
  ];
  const clauses = [
    ...(set.length > 0 ? [`SET ${set.join(", ")}`] : []),
    ...(forgotten.length > 0 ? [`REMOVE ${forgotten.join(", ")}`] : []),
  ];
  const reason: DisabledReason = "manual";
  try {
    const { Attributes } = await dynamo().send(
      new UpdateCommand({
        ...keyOf(projectId, id),
        UpdateExpression: clauses.join(" "),
        ConditionExpression: "attribute_exists(id)",
        ...(url !== undefined && { ExpressionAttributeNames: { "#url": "url" } }),
        ...(set.length > 0 && {
          ExpressionAttributeValues: {
            ":url": url,
            ":events": events,
            ...(enabled === false && { ":at": at, ":manual": reason }),
          },
        }),
        ReturnValues: "ALL_NEW",
      }),
    );
    return Attributes as Webhook;
  } catch (error) {
    if (isConditionFailed(error)) throw noSuchWebhook(error);
    throw error;
  }
}

/**
 * Deletes a webhook and its secret. No attempt begins after this, but for one whose sender has just read the webhook.
 * @throws ApiError `not_found` when the project has no such webhook
 */
export async function remove(projectId: string, id: string): Promise<void> {
  try {
    await transact({
      webhook: { Delete: { ...keyOf(projectId, id), ConditionExpression: "attribute_exists(id)" } },
      secret: { Delete: secretOf(id) },
      counter: {
        Update: {
          ...keyOf(projectId, COUNTER),
          UpdateExpression: "ADD webhook_count :minusOne",
          ExpressionAttributeValues: { ":minusOne": -1 },
        },
      },
    });
  } catch (error) {
    if (error instanceof ConditionsFailed) throw noSuchWebhook(error);
    throw error;
  }
}

/** Notes the first failure after a success; later failures leave it, and those of another URL do not count. */
export function markFailing(webhook: Webhook, at: string): Promise<boolean> {
  const condition = "attribute_not_exists(failing_since) AND #url = :url";
  return change(webhook, "SET failing_since = :at", condition, { ":at": at, ":url": webhook.url });
}

/** Notes that the receiver works again. */
export function clearFailing(webhook: Webhook): Promise<boolean> {
  return change(webhook, "REMOVE failing_since, probe_at", "attribute_exists(failing_since)");
}

/** Takes the right to probe a failing webhook. @returns false when another sender has it */
export function claimProbe(webhook: Webhook, nextProbeAt: string): Promise<boolean> {
  const { probe_at } = webhook;
  const values = { ":next": nextProbeAt };
  if (probe_at === undefined) return change(webhook, "SET probe_at = :next", "attribute_not_exists(probe_at)", values);
  return change(webhook, "SET probe_at = :next", "probe_at = :seen", { ...values, ":seen": probe_at });
}

/**
 * Stops sending. Deliveries that come later are held.
 * @param webhook as it was when the reason arose: one that has another URL since then is not disabled, nor is one disabled
 * as failing that has had a success
 */
export function disable(webhook: Webhook, reason: DisabledReason, at: string): Promise<boolean> {
  const set = "SET disabled_at = :at, disabled_reason = :reason";
  const values = { ":at": at, ":reason": reason, ":url": webhook.url };
  const isNew = "attribute_not_exists(disabled_at) AND #url = :url";
  const { failing_since } = webhook;
  if (reason !== "failing" || failing_since === undefined) return change(webhook, set, isNew, values);
  return change(webhook, set, `${isNew} AND failing_since = :since`, { ...values, ":since": failing_since });
}

/** Changes the webhook if it still exists and the condition holds. @returns whether it did */
async function change(
  { project_id, id }: Webhook,
  expression: string,
  condition: string,
  values?: Record<string, string>,
): Promise<boolean> {
  try {
    await dynamo().send(
      new UpdateCommand({
        ...keyOf(project_id, id),
        UpdateExpression: expression,
        ConditionExpression: `attribute_exists(id) AND ${condition}`,
        ...(condition.includes("#url") && { ExpressionAttributeNames: { "#url": "url" } }),
        ExpressionAttributeValues: values,
      }),
    );
    return true;
  } catch (error) {
    if (isConditionFailed(error)) return false;
    throw error;
  }
}
