import type { MeteredReads } from "../../foundation/budgets/metered-reads-store.ts";
import { tableName } from "../../foundation/platform/env.ts";
import { selecting, when } from "../../foundation/platform/expression.ts";
import { firstIdAt, timeOfUuid } from "../../foundation/platform/uuid.ts";
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
      ...selecting(when`webhook_id = ${webhookId} AND id >= ${firstIdAt(since.getTime())}`, {
        attributes: ["event", "test", "status", "attempts"],
      }),
      ScanIndexForward: false,
      Limit: MAX_ROWS_READ - deliveries.length,
      ...(lastKey && { ExclusiveStartKey: lastKey }),
    });
    deliveries.push(...(Items as CountedDelivery[]));
    lastKey = LastEvaluatedKey;
    if (lastKey === undefined) return { deliveries };
  } while (deliveries.length < MAX_ROWS_READ && reads.rowsLeft > 0);
  return { deliveries, readBackTo: timeOfUuid(String(lastKey.id)) };
}
