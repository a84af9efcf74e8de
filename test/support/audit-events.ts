import { randomBytes } from "node:crypto";
import { type AuditScope, createAuditEvent } from "../../functions/foundation/records/audit-event.ts";
import { putAll } from "./put-all.ts";

/** Stores audit events of 2 KB. */
export async function givenAuditEvents(scope: AuditScope, count: number): Promise<void> {
  const events = Array.from({ length: count }, () => {
    const input = { scope, action: "api_key.created", actor: { type: "system" }, resource_id: "unknown" } as const;
    return createAuditEvent({ ...input, details: { name: "x".repeat(1_800) } }, new Date(), randomBytes(16));
  });
  await putAll("auditEvents", events);
}
