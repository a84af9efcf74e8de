import { actorOf } from "../../../../functions/foundation/access/actor.ts";
import { createAuditEvent } from "../../../../functions/foundation/records/audit-event.ts";

const now = new Date("2026-03-01T12:00:00.000Z");

test("an event is kept for 400 days", () => {
  const input = { scope: "user:u", action: "api_key.created", actor: { type: "jwt" }, resource_id: "r" } as const;
  const { at, expires_at, details } = createAuditEvent(input, now, Buffer.alloc(16));
  expect({ at, details }).toEqual({ at: "2026-03-01T12:00:00.000Z", details: {} });
  expect(new Date(expires_at * 1000).toISOString()).toBe("2027-04-05T12:00:00.000Z");
});

test("the user agent of an actor is valid Unicode after it is cut off, and does not reverse the text around it", () => {
  const agentOf = (userAgent: string) =>
    actorOf({ userId: "u", authType: "jwt" }, { requestId: "r", identity: { userAgent } } as never).user_agent;
  expect(agentOf(`${"x".repeat(255)}\u{1F600}y`)).toBe(`${"x".repeat(255)}\u{1F600}`);
  expect(agentOf("curl\ud83d\u202e")).toBe("curl\ufffd");
});

test("the user agent of an actor is bounded and has no control characters", () => {
  const identity = { sourceIp: "203.0.113.7", userAgent: `a\u001b[31mb${"x".repeat(1000)}` };
  const actor = actorOf({ userId: "u", authType: "api_key", keyId: "k" }, { requestId: "r", identity } as never);
  expect(actor).toMatchObject({ type: "api_key", user_id: "u", credential_id: "k", address: "203.0.113.7" });
  expect(actor.user_agent).toBe(`a [31mb${"x".repeat(249)}`);
});
