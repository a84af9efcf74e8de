import type { Actor } from "../access/actor.ts";
import { timeOrderedUuid } from "../platform/uuid.ts";

/** What can be done to keys, webhooks, secrets, members and trusted workflows. The names are part of the API. */
export const auditActions = [
  "api_key.created",
  "api_key.deleted",
  "api_key.renamed",
  "api_key.rolled",
  "api_key.earlier_ended",
  "sign_in.approved",
  "sign_in.denied",
  "webhook.created",
  "webhook.updated",
  "webhook.secret_rotated",
  "webhook.disabled",
  "webhook.deleted",
  "webhook.test_requested",
  "webhook.certification_requested",
  "webhook.redelivery_requested",
  "webhook.recovery_requested",
  "member.updated",
  "member.removed",
  "service_account.created",
  "service_account.removal_begun",
  "service_account.deleted",
  "project.suspended",
  "project.resumed",
  "trusted_workflow.created",
  "trusted_workflow.deleted",
] as const;
export type AuditAction = (typeof auditActions)[number];

/** Whose audit log an event is in: a user's (their keys), or a project's (all that belongs to it). */
export type AuditScope = `user:${string}` | `project:${string}`;

export interface AuditEvent {
  scope: AuditScope;
  /** Time-ordered: the log is in the order of the ids. */
  id: string;
  at: string;
  action: AuditAction;
  actor: Actor;
  /** Id of the key, the webhook, the member or the trusted workflow that was changed. */
  resource_id: string;
  /** What helps to understand the change, such as a name. Contains no secret. */
  details: Record<string, unknown>;
  /** Time to live, in epoch seconds. */
  expires_at: number;
}

const RETENTION_SECONDS = 400 * 24 * 3600;

export type AuditInput = Pick<AuditEvent, "scope" | "action" | "actor" | "resource_id"> &
  Partial<Pick<AuditEvent, "details">>;

/** @param random at least 16 random bytes */
export function createAuditEvent(input: AuditInput, now: Date, random: Buffer): AuditEvent {
  return {
    ...input,
    id: timeOrderedUuid(now.getTime(), random),
    at: now.toISOString(),
    details: input.details ?? {},
    expires_at: Math.floor(now.getTime() / 1000) + RETENTION_SECONDS,
  };
}

/** Returns the fields of an event in a list. */
export function toListItem({ id, at, action, actor, resource_id, details }: AuditEvent) {
  return { id, at, action, actor, resource_id, details };
}
