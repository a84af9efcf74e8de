import { QueryCommand } from "@aws-sdk/lib-dynamodb";
import { dynamo } from "../platform/aws.ts";
import { tableName } from "../platform/env.ts";
import { fields } from "../schema/input.ts";
import { type Page, page, pageFields } from "../schema/page.ts";
import type { AuditEvent, AuditScope } from "./audit-event.ts";

/** Query parameters of both audit logs. */
export const auditQuery = page(fields(pageFields));

/**
 * Reads a page of an audit log, newest first.
 * @returns `nextCursor` is absent on the last page
 */
export async function listPage(
  scope: AuditScope,
  { limit, cursor }: Page,
): Promise<{ items: AuditEvent[]; nextCursor?: string }> {
  const { Items = [] } = await dynamo().send(
    new QueryCommand({
      TableName: tableName("auditEvents"),
      ConsistentRead: true,
      KeyConditionExpression: cursor === undefined ? "#scope = :scope" : "#scope = :scope AND id < :cursor",
      ExpressionAttributeNames: { "#scope": "scope" },
      ExpressionAttributeValues: { ":scope": scope, ...(cursor !== undefined && { ":cursor": cursor }) },
      ScanIndexForward: false,
      // One more than requested shows whether there is a next page. 101 events of 2 KB fit into a query's 1 MB.
      Limit: limit + 1,
    }),
  );
  const items = Items.slice(0, limit) as AuditEvent[];
  const last = items.at(-1);
  return Items.length > limit && last ? { items, nextCursor: last.id } : { items };
}
