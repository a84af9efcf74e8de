import type { MeteredReads } from "../../foundation/budgets/metered-reads-store.ts";
import { tableName } from "../../foundation/platform/env.ts";
import { selecting, when } from "../../foundation/platform/expression.ts";
import type { AuditEvent, AuditScope } from "../../foundation/records/audit-event.ts";
import { fields } from "../../foundation/schema/input.ts";
import { type Page, page, pageFields } from "../../foundation/schema/page.ts";

/** Query parameters of both audit logs. */
export const auditQuery = page(fields(pageFields));

/**
 * Reads a page of an audit log, newest first.
 * @returns `nextCursor` is absent on the last page
 */
export async function listPage(
  reads: MeteredReads,
  scope: AuditScope,
  { limit, cursor }: Page,
): Promise<{ items: AuditEvent[]; nextCursor?: string | undefined }> {
  const items: AuditEvent[] = [];
  let lastId = cursor;
  do {
    const { Items = [], LastEvaluatedKey } = await reads.query({
      TableName: tableName("auditEvents"),
      ConsistentRead: true,
      ...selecting(when`#scope = ${scope}`),
      ScanIndexForward: false,
      // One more than requested shows whether there is a next page. 101 events of 2 KB are far fewer units than a page's.
      Limit: limit + 1 - items.length,
      ...(lastId !== undefined && { ExclusiveStartKey: { scope, id: lastId } }),
    });
    items.push(...(Items as AuditEvent[]));
    lastId = LastEvaluatedKey?.id;
  } while (lastId !== undefined && items.length <= limit);
  return { items: items.slice(0, limit), nextCursor: items.length > limit ? items[limit - 1]?.id : undefined };
}
