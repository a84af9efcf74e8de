import { randomBytes } from "node:crypto";
import { PutCommand } from "@aws-sdk/lib-dynamodb";
import type { Actor } from "../access/actor.ts";
import { dynamo, type TransactItem } from "../platform/aws.ts";
import { tableName } from "../platform/env.ts";
import { type AuditAction, type AuditInput, createAuditEvent } from "./audit-event.ts";

/**
 * Returns the write of an audit event, for the transaction that makes the change: the log never claims a change that
 * was not made, and no change is missing from it.
 */
export const auditPut = (input: AuditInput, now = new Date()): TransactItem => ({ Put: put(input, now) });

/**
 * Writes the audit event of a request about a webhook whose effect is no transaction. Call it before the effect, so that
 * none is missing from the log.
 */
export async function recordRequest(
  action: AuditAction,
  actor: Actor,
  webhook: { project_id: string; id: string },
  details: Record<string, unknown>,
  now: Date,
): Promise<void> {
  const input = { scope: `project:${webhook.project_id}`, action, actor, resource_id: webhook.id, details } as const;
  await dynamo().send(new PutCommand(put(input, now)));
}

const put = (input: AuditInput, now: Date) => ({
  TableName: tableName("auditEvents"),
  Item: createAuditEvent(input, now, randomBytes(16)),
});
