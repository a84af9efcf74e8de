import type { MeteredReads } from "../access/metered-reads-store.ts";
import { tableName } from "../platform/env.ts";
import { timeOfUuid, timeOrderedUuid } from "../platform/uuid.ts";
import type { CountedDelivery, StatsReads } from "./delivery-stats.ts";

/** Upper bound on the rows read for one call. The read units are bounded by the meter. */
const MAX_ROWS_READ = 1_000;

/**
 * Reads the newest deliveries of a webhook whose event is not before `since`, without their bodies. Eventually
 * consistent.
 */
export async function readForStats(reads: MeteredReads, webhookId: string, since: Date): Promise<StatsReads> {
  const deliveries: CountedDelivery[] = [];
  let lastKey: Record<string, unknown> | undefined;
  do {
    const { Items = [], LastEvaluatedKey } = await reads.query({
      TableName: tableName("deliveries"),
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
    });
    deliveries.push(...(Items as CountedDelivery[]));
    lastKey = LastEvaluatedKey;
    if (lastKey === undefined) return { deliveries };
  } while (deliveries.length < MAX_ROWS_READ && reads.rowsLeft > 0);
  return { deliveries, readBackTo: timeOfUuid(String(lastKey.id)) };
}
