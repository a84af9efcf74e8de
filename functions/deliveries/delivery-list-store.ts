import { paginateQuery, QueryCommand } from "@aws-sdk/lib-dynamodb";
import { dynamo } from "../platform/aws.ts";
import { tableName } from "../platform/env.ts";
import { timeOrderedUuid } from "../platform/uuid.ts";
import type { Delivery, DeliveryStatus } from "./delivery.ts";
import type { ListQuery } from "./delivery-presenter.ts";

/* Lists the deliveries of a webhook. Ids sort by the time of the event. */

/** Upper bounds for a page with a status filter: rows read, and queries of at most 1 MB each. */
const MAX_ROWS_READ = 1_000;
const MAX_QUERIES = 20;

/** The attributes of a list item. Leaves out the large ones: the body and the attempts. */
const summaryProjection = {
  ProjectionExpression:
    "webhook_id, id, #event, deployment_id, #status, #test, created_at, next_attempt_at, attempt_count, #trigger, due_shard, sending_until",
  ExpressionAttributeNames: { "#event": "event", "#status": "status", "#test": "test", "#trigger": "trigger" },
};

/**
 * Reads a page of a webhook's deliveries, newest first. With a status filter, a page may have fewer than `limit` items
 * although more follow, because the number of rows read is bounded.
 * @returns `nextCursor` is absent on the last page
 */
export async function listPage(
  webhookId: string,
  { status, limit, cursor }: ListQuery,
): Promise<{ items: Delivery[]; nextCursor?: string }> {
  const items: Delivery[] = [];
  let after = cursor;
  let rowsRead = 0;
  for (let queries = 1; ; queries++) {
    const { Items = [], LastEvaluatedKey } = await dynamo().send(
      new QueryCommand({
        TableName: tableName("deliveries"),
        ConsistentRead: true,
        KeyConditionExpression: "webhook_id = :webhook",
        ExpressionAttributeValues: { ":webhook": webhookId },
        ScanIndexForward: false,
        // One more row than requested shows whether there is a next page.
        Limit: status === undefined ? limit + 1 : Math.min(100, MAX_ROWS_READ - rowsRead),
        ...summaryProjection,
        ...(after !== undefined && { ExclusiveStartKey: { webhook_id: webhookId, id: after } }),
      }),
    );
    for (const row of Items as Delivery[]) {
      if (items.length === limit) return { items, nextCursor: items.at(-1)?.id ?? "" };
      if (status === undefined || row.status === status) items.push(row);
    }
    rowsRead += Items.length;
    after = LastEvaluatedKey?.id;
    if (after === undefined) return { items };
    if (status !== undefined && (rowsRead >= MAX_ROWS_READ || queries >= MAX_QUERIES)) {
      return { items, nextCursor: after };
    }
  }
}

/** Where a scan begins. */
export interface ScanRange {
  /** Time of the earliest event. */
  since: Date;
  /** The id after which to begin, if it is later than `since`. */
  after?: string | undefined;
}

/** The rows of one query, in the order of their events. */
interface ScannedPage {
  /** The deliveries that were looked for. */
  found: Delivery[];
  rowsRead: number;
  /** Id of the last row read; absent when the query has reached the newest delivery. */
  lastId?: string | undefined;
}

/**
 * Yields pages of the deliveries with one of these statuses whose event is not before `since`, oldest first. Leaves out
 * test deliveries.
 */
export async function* findByStatus(
  webhookId: string,
  { since, after }: ScanRange,
  statuses: readonly DeliveryStatus[],
): AsyncGenerator<ScannedPage, void, void> {
  // The smallest possible id of that millisecond.
  const first = timeOrderedUuid(Math.max(0, since.getTime()), new Uint8Array(16));
  const isContinued = after !== undefined && after >= first;
  const pages = paginateQuery(
    { client: dynamo(), pageSize: 500 },
    {
      TableName: tableName("deliveries"),
      ConsistentRead: true,
      KeyConditionExpression: `webhook_id = :webhook AND id ${isContinued ? ">" : ">="} :start`,
      ExpressionAttributeValues: { ":webhook": webhookId, ":start": isContinued ? after : first },
      ...summaryProjection,
    },
  );
  for await (const { Items = [], LastEvaluatedKey } of pages) {
    // Test deliveries are never recovered: their data is a sample.
    const found = (Items as Delivery[]).filter(({ status, test }) => statuses.includes(status) && !test);
    yield { found, rowsRead: Items.length, lastId: LastEvaluatedKey?.id };
  }
}
