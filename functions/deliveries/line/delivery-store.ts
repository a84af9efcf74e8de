import { PutCommand } from "@aws-sdk/lib-dynamodb";
import type { MeteredReads } from "../../foundation/budgets/metered-reads-store.ts";
import { batchGet, dynamo, isConditionFailed, storedItem } from "../../foundation/platform/aws.ts";
import { readItem } from "../../foundation/platform/dynamo.ts";
import { tableName } from "../../foundation/platform/env.ts";
import { ApiError } from "../../foundation/platform/errors.ts";
import { onlyIf, selecting, when } from "../../foundation/platform/expression.ts";
import { usable } from "../../webhooks/subscription/subscription-store.ts";
import type { Webhook } from "../../webhooks/webhook/webhook.ts";
import { type SigningSecrets, signingSecrets } from "../../webhooks/webhook/webhook-secret-store.ts";
import type { Delivery } from "./delivery.ts";

/** Returns a delivery, or undefined when the webhook has no delivery with this id. Strongly consistent. */
export const find = (webhook_id: string, id: string): Promise<Delivery | undefined> =>
  readItem({ TableName: tableName("deliveries"), Key: { webhook_id, id } });

interface Receiver {
  webhook: Webhook;
  secrets: SigningSecrets;
}

interface OfWebhook {
  project_id: string;
  webhook_id: string;
}

type ReadForRequest<Row> = { row: Row | undefined } & (Receiver | Partial<Record<keyof Receiver, undefined>>);

/**
 * Reads what a sender needs before a request: a row of the table of deliveries, its webhook and the secrets. URL and secret may
 * have changed while the row waited. One request takes two thirds of the time and half of the CPU of three. Strongly consistent.
 * @returns what is deleted is absent
 * @throws Error when the webhook exists without its secret: a lost secret must not cancel its deliveries
 */
export async function readForRequest<Row extends { id: string } = Delivery>(
  row: { webhook_id: string; id: string },
  webhook: OfWebhook,
): Promise<ReadForRequest<Row>> {
  const { rows, ...receiver } = await readForRequests<Row>([row], webhook);
  return { row: rows[0], ...receiver };
}

/**
 * Returns a function that reads as `readForRequest`. The deliveries of one webhook that ask for it in the same moment, as those of a
 * batch of messages do, share a request, and the read units of their webhook and its secrets.
 */
export function readsForRequests() {
  const waiting = new Map<string, { ids: Set<string>; reading: ReturnType<typeof readForRequests<Delivery>> }>();
  return async ({ project_id, webhook_id, id }: OfWebhook & { id: string }): Promise<ReadForRequest<Delivery>> => {
    const key = `${project_id} ${webhook_id}`;
    let shared = waiting.get(key);
    if (!shared) {
      const ids = new Set<string>();
      // The others of the batch add theirs before. Not all of the batch: the busy partition of one webhook must not delay the rest.
      const reading = Promise.resolve().then(() => {
        waiting.delete(key);
        const keys = [...ids].map((each) => ({ webhook_id, id: each }));
        return readForRequests<Delivery>(keys, { project_id, webhook_id });
      });
      shared = { ids, reading };
      waiting.set(key, shared);
    }
    shared.ids.add(id);
    const { rows, ...receiver } = await shared.reading;
    return { row: rows.find((row) => row.id === id), ...receiver };
  };
}

async function readForRequests<Row>(
  keys: { webhook_id: string; id: string }[],
  { project_id, webhook_id }: OfWebhook,
  isAgain = false,
): Promise<{ rows: Row[] } & (Receiver | Partial<Record<keyof Receiver, undefined>>)> {
  const [deliveries, webhooks, secrets] = [tableName("deliveries"), tableName("webhooks"), tableName("webhookSecrets")];
  const found = await batchGet({
    [deliveries]: keys,
    [webhooks]: [{ project_id, id: webhook_id }],
    [secrets]: [{ webhook_id }],
  });
  const rows = (found[deliveries] ?? []) as Row[];
  const read = found[webhooks]?.[0] as unknown as Webhook | undefined;
  const webhook = read && (await usable(read, new Date()));
  if (!webhook) return { rows };
  const secretRow = found[secrets]?.[0];
  if (secretRow) return { rows, webhook, secrets: signingSecrets(secretRow) };
  // Webhook and secret are deleted in one transaction, but a batch read may return the webhook without its secret.
  if (isAgain) throw new Error(`The webhook ${webhook_id} has no secret.`);
  return readForRequests(keys, { project_id, webhook_id }, true);
}

/**
 * Returns a delivery. Strongly consistent.
 * @throws ApiError `not_found` when the webhook has no delivery with this id
 */
export async function get(webhookId: string, id: string): Promise<Delivery> {
  return existing(await find(webhookId, id));
}

/**
 * Returns a delivery as `get` does, and counts the units: 69 for the largest row.
 * @throws ApiError `not_found` when the webhook has no delivery with this id
 */
export async function getMetered(reads: MeteredReads, webhookId: string, id: string): Promise<Delivery> {
  const { Items: [item] = [] } = await reads.query({
    TableName: tableName("deliveries"),
    ConsistentRead: true,
    ...selecting(when`webhook_id = ${webhookId} AND id = ${id}`),
    Limit: 1,
  });
  return existing(item as Delivery | undefined);
}

function existing(delivery: Delivery | undefined): Delivery {
  if (!delivery) throw new ApiError("not_found", "No delivery with this id exists.");
  return delivery;
}

/**
 * Writes the row of a delivery if it is as read. To be called by `change` (change-delivery.ts) only.
 * @param delivery the row, with a version of its own
 * @param readVersion the version that was read; undefined = no row existed
 * @returns whether the row was written, or the row that exists instead
 */
export async function put(
  delivery: Delivery,
  readVersion: string | undefined,
): Promise<{ isWritten: true } | { isWritten: false; stored: Delivery | undefined }> {
  try {
    await dynamo().send(
      new PutCommand({
        TableName: tableName("deliveries"),
        Item: delivery,
        ...onlyIf(readVersion === undefined ? when`attribute_not_exists(id)` : when`version = ${readVersion}`),
        ReturnValuesOnConditionCheckFailure: "ALL_OLD",
      }),
    );
    return { isWritten: true };
  } catch (error) {
    if (!isConditionFailed(error)) throw error;
    const stored = storedItem(error) as Delivery | undefined;
    // Equal when the SDK has repeated a write that took effect.
    return stored?.version === delivery.version ? { isWritten: true } : { isWritten: false, stored };
  }
}
