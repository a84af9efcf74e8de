import { BatchWriteCommand } from "@aws-sdk/lib-dynamodb";
import type { TableKey } from "../../functions/foundation/manifest/tables.ts";
import { dynamo } from "../../functions/foundation/platform/aws.ts";
import { tableName } from "../../functions/foundation/platform/env.ts";
import { inParallel } from "../../functions/foundation/platform/parallel.ts";

/** https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_BatchWriteItem.html */
const MAX_BATCH = 25;

/** Writes items to a table directly, in batches, for less CPU than one by one. */
export async function putAll(table: TableKey, items: readonly object[]): Promise<void> {
  const batches = Array.from({ length: Math.ceil(items.length / MAX_BATCH) }, (_, index) =>
    items.slice(index * MAX_BATCH, (index + 1) * MAX_BATCH),
  );
  await inParallel(batches, 8, async (batch) => {
    const RequestItems = { [tableName(table)]: batch.map((Item) => ({ PutRequest: { Item } })) };
    const { UnprocessedItems = {} } = await dynamo().send(new BatchWriteCommand({ RequestItems }));
    if (Object.keys(UnprocessedItems).length > 0) throw new Error(`Rows of ${table} were not written.`);
  });
}
