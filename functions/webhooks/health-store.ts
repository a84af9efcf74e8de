import { QueryCommand } from "@aws-sdk/lib-dynamodb";
import { dynamo } from "../platform/aws.ts";
import { tableName } from "../platform/env.ts";
import { allEnded } from "../platform/parallel.ts";
import { timeOrderedUuid } from "../platform/uuid.ts";
import { checkCircuit } from "./circuit-breaker.ts";
import { type Health, healthOf, type ReadAttempt } from "./health.ts";
import type { Webhook } from "./webhook.ts";

/*
 * Reads what the health of a webhook needs beyond its row. One small query of its newest deliveries; two more while its
 * circuit is open. So a list of 20 webhooks stays a matter of milliseconds and of a few hundred kilobytes.
 */

/** Upper bound on the deliveries read for one webhook. A page of DynamoDB ends after 1 MB, if that comes first. */
const MAX_ROWS_READ = 10;

/** The attributes of a delivery that are read. */
interface DeliveryAttempts {
  attempts?: Omit<ReadAttempt, "isTest">[];
  test?: boolean;
}

/** Returns the health of a webhook. Strongly consistent. */
export async function readHealth(webhook: Webhook, now: Date): Promise<Health> {
  const [recent, probe] = await allEnded([recentDeliveries(webhook), readProbe(webhook, now)]);
  const attempts = [...recent, ...probe.probed].flatMap(({ attempts = [], test = false }) =>
    attempts.map((attempt) => ({ ...attempt, isTest: test })),
  );
  return healthOf(webhook, { attempts, hasParked: probe.hasParked }, now);
}

/**
 * Reads the newest deliveries. Of a webhook that fails or is disabled, those whose event was before that: the newer
 * ones wait, and have no attempts.
 */
async function recentDeliveries({
  id,
  failing_since,
  disabled_at,
  suspended_at,
}: Webhook): Promise<DeliveryAttempts[]> {
  const [until] = [failing_since, disabled_at, suspended_at].filter((time) => time !== undefined).toSorted();
  // The smallest possible id of the millisecond after it.
  const end = until && timeOrderedUuid(Date.parse(until) + 1, new Uint8Array(16));
  return query({
    KeyConditionExpression: `webhook_id = :webhook${end ? " AND id < :end" : ""}`,
    ExpressionAttributeValues: { ":webhook": id, ...(end && { ":end": end }) },
    ScanIndexForward: false,
    Limit: MAX_ROWS_READ,
  });
}

interface ProbeReads {
  hasParked: boolean;
  /** The delivery that was the last failed probe, if there was one. */
  probed: DeliveryAttempts[];
}

/** Reads whether deliveries are parked (functions/deliveries/parking-store.ts), and the last failed probe. */
async function readProbe(webhook: Webhook, now: Date): Promise<ProbeReads> {
  if (checkCircuit(webhook, now).kind === "closed") return { hasParked: false, probed: [] };
  const webhookId = webhook.id;
  const { Items: [wakeUp] = [] } = await dynamo().send(
    new QueryCommand({
      TableName: tableName("deliveries"),
      ConsistentRead: true,
      KeyConditionExpression: "webhook_id = :wakeUp AND id = :webhook",
      ExpressionAttributeValues: { ":wakeUp": `wake-up:${webhookId}`, ":webhook": webhookId },
      ProjectionExpression: "empty_since, probed_id",
    }),
  );
  if (wakeUp === undefined) return { hasParked: false, probed: [] };
  const { empty_since, probed_id } = wakeUp;
  const probed =
    probed_id === undefined
      ? []
      : await query({
          KeyConditionExpression: "webhook_id = :webhook AND id = :probed",
          ExpressionAttributeValues: { ":webhook": webhookId, ":probed": probed_id },
        });
  return { hasParked: empty_since === undefined, probed };
}

async function query(input: {
  KeyConditionExpression: string;
  ExpressionAttributeValues: Record<string, string>;
  ScanIndexForward?: boolean;
  Limit?: number;
}): Promise<DeliveryAttempts[]> {
  const { Items = [] } = await dynamo().send(
    new QueryCommand({
      TableName: tableName("deliveries"),
      ConsistentRead: true,
      ProjectionExpression: "attempts, #test",
      ExpressionAttributeNames: { "#test": "test" },
      ...input,
    }),
  );
  return Items as DeliveryAttempts[];
}
