import { QueryCommand } from "@aws-sdk/lib-dynamodb";
import { dynamo } from "../platform/aws.ts";
import { tableName } from "../platform/env.ts";
import { timeOfUuid, timeOrderedUuid } from "../platform/uuid.ts";
import type { CountedDelivery, StatsReads } from "./delivery-stats.ts";

/** Upper bounds on one call: rows read, and queries of at most 1 MB each. */
const MAX_ROWS_READ = 1_000;
const MAX_QUERIES = 4;

/**
 * Reads the newest deliveries of a webhook whose event is not before `since`, without their bodies. Strongly
 * consistent.
 */
export async function readForStats(webhookId: string, since: Date): Promise<StatsReads> {
  const deliveries: CountedDelivery[] = [];
  let lastKey: Record<string, unknown> | undefined;
  for (let queries = 0; queries < MAX_QUERIES; queries++) {
    const { Items = [], LastEvaluatedKey } = await dynamo().send(
      new QueryCommand({
        TableName: tableName("deliveries"),
        ConsistentRead: true,
        KeyConditionExpression: "webhook_id = :webhook AND id >= :since",
        ExpressionAttributeValues: {
          ":webhook": webhookId,
          // The smallest possible id of that millisecond.
          ":since": timeOrderedUuid(Math.max(0, since.getTime()), new Uint8Array(16)),
        },
        ScanIndexForward: false,
        Limit: MAX_ROWS_READ - deliveries.length,
        ProjectionExpression: "#event, #test, attempts",
        ExpressionAttributeNames: { "#event": "event", "#test": "test" },
        ...(lastKey && { ExclusiveStartKey: lastKey }),
      }),
    );
    deliveries.push(...(Items as CountedDelivery[]));
    lastKey = LastEvaluatedKey;
    if (lastKey === undefined) return { deliveries };
    if (deliveries.length >= MAX_ROWS_READ) break;
  }
  return { deliveries, readBackTo: timeOfUuid(String(lastKey?.id)) };
}
