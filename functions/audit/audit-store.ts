import { randomBytes } from "node:crypto";
import type { TransactItem } from "../platform/aws.ts";
import { tableName } from "../platform/env.ts";
import { type AuditInput, createAuditEvent } from "./audit-event.ts";

/**
 * Returns the write of an audit event, for the transaction that makes the change: the log never claims a change that
 * was not made, and no change is missing from it.
 */
export function auditPut(input: AuditInput, now = new Date()): TransactItem {
  return { Put: { TableName: tableName("auditEvents"), Item: createAuditEvent(input, now, randomBytes(16)) } };
}
