import { paginateQuery, QueryCommand } from "@aws-sdk/lib-dynamodb";
import { dynamo } from "../platform/aws.ts";
import { tableName } from "../platform/env.ts";
import { timeOrderedUuid } from "../platform/uuid.ts";
import type { Delivery, DeliveryStatus } from "./delivery.ts";
import type { ListQuery } from "./delivery-presenter.ts";

/* A webhook's deliveries in the order of their events, which is the order of their ids. */

/** Rows that one page looks at, when it looks for a status that few of them have; and 1 MB reads, when they are large. */
const MAX_LOOKED_AT = 1_000;
const MAX_QUERIES = 20;

/** All of a row but what may be large: the body and what came back. */
const inShort = {
  ProjectionExpression:
    "webhook_id, id, #event, deployment_id, #status, #test, created_at, next_attempt_at, attempt_count",
  ExpressionAttributeNames: { "#event": "event", "#status": "status", "#test": "test" },
};

/**
 * A page of a webhook's deliveries, newest first. With a status, a page may hold fewer than `limit` although more follow:
 * what it may read is bounded.
 * @returns `nextCursor` is absent on the last page
 */
export async function listPage(
  webhookId: string,
  { status, limit, cursor }: ListQuery,
): Promise<{ items: Delivery[]; nextCursor?: string }> {
  const items: Delivery[] = [];
  let after = cursor;
  let lookedAt = 0;
  for (let queries = 1; ; queries++) {
    const { Items = [], LastEvaluatedKey } = await dynamo().send(
      new QueryCommand({
        TableName: tableName("deliveries"),
        ConsistentRead: true,
        KeyConditionExpression: "webhook_id = :webhook",
        ExpressionAttributeValues: { ":webhook": webhookId },
        ScanIndexForward: false,
        // One more than wanted tells whether there is a next page.
        Limit: status === undefined ? limit + 1 : Math.min(100, MAX_LOOKED_AT - lookedAt),
        ...inShort,
        ...(after !== undefined && { ExclusiveStartKey: { webhook_id: webhookId, id: after } }),
      }),
    );
    for (const row of Items as Delivery[]) {
      if (items.length === limit) return { items, nextCursor: items.at(-1)?.id ?? "" };
      if (status === undefined || row.status === status) items.push(row);
    }
    lookedAt += Items.length;
    after = LastEvaluatedKey?.id;
    if (after === undefined) return { items };
    if (status !== undefined && (lookedAt >= MAX_LOOKED_AT || queries >= MAX_QUERIES)) {
      return { items, nextCursor: after };
    }
  }
}

/** The deliveries of a webhook's events since a time that ended in one of these ways, oldest first, in pages. */
export async function* findFinished(webhookId: string, since: Date, statuses: readonly DeliveryStatus[]) {
  const pages = paginateQuery(
    { client: dynamo(), pageSize: 500 },
    {
      TableName: tableName("deliveries"),
      ConsistentRead: true,
      KeyConditionExpression: "webhook_id = :webhook AND id >= :first",
      ExpressionAttributeValues: {
        ":webhook": webhookId,
        // The smallest id of that millisecond.
        ":first": timeOrderedUuid(Math.max(0, since.getTime()), new Uint8Array(16)),
      },
      ...inShort,
    },
  );
  for await (const { Items = [] } of pages) {
    // A sample that failed was a trial; nobody waits for it.
    yield (Items as Delivery[]).filter(({ status, test }) => statuses.includes(status) && !test);
  }
}
