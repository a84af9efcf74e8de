import { randomBytes } from "node:crypto";
import { BatchWriteCommand } from "@aws-sdk/lib-dynamodb";
import { type AuditScope, createAuditEvent } from "../../functions/audit/audit-event.ts";
import { dynamo } from "../../functions/platform/aws.ts";
import { tableName } from "../../functions/platform/env.ts";

const MAX_BATCH = 25;

/** Stores audit events of 2 KB. */
export async function givenAuditEvents(scope: AuditScope, count: number): Promise<void> {
  const requests = Array.from({ length: count }, () => {
    const input = { scope, action: "api_key.created", actor: { type: "system" }, resource_id: "unknown" } as const;
    const event = createAuditEvent({ ...input, details: { name: "x".repeat(1_800) } }, new Date(), randomBytes(16));
    return { PutRequest: { Item: event } };
  });
  for (let start = 0; start < count; start += MAX_BATCH) {
    const RequestItems = { [tableName("auditEvents")]: requests.slice(start, start + MAX_BATCH) };
    await dynamo().send(new BatchWriteCommand({ RequestItems }));
  }
}
