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

/** What an event is about, and the project whose log it is in. */
interface ProjectResource {
  project_id: string;
  id: string;
}

type ProjectEvent = [action: AuditAction, actor: Actor, resource: ProjectResource, details?: object, now?: Date];

/** Returns the write of an event in the log of a project, for the transaction that makes the change. */
export const projectAudit = (...event: ProjectEvent): TransactItem => ({ Put: projectPut(...event) });

/**
 * Writes the audit event of a request whose effect is no transaction. Call it before the effect, so that none is missing
 * from the log.
 */
export async function recordRequest(...event: ProjectEvent): Promise<void> {
  await dynamo().send(new PutCommand(projectPut(...event)));
}

const projectPut = (...[action, actor, { project_id, id }, details, now = new Date()]: ProjectEvent) =>
  put({ scope: `project:${project_id}`, action, actor, resource_id: id, details: { ...details } }, now);

const put = (input: AuditInput, now: Date) => ({
  TableName: tableName("auditEvents"),
  Item: createAuditEvent(input, now, randomBytes(16)),
});
