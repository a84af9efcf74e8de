import { randomUUID } from "node:crypto";
import { type Attempt, createDelivery, isOnRequest, withAttempt } from "../../../functions/deliveries/delivery.ts";
import { deliveryIdOf } from "../../../functions/deployments/deployment-event.ts";
import { parseDeploymentEvent } from "../../../functions/deployments/parse-deployment-event.ts";
import type { Webhook } from "../../../functions/webhooks/webhook.ts";
import { eventOf } from "../../support/deliveries.ts";

const now = new Date("2026-01-02T03:04:05.678Z");
const webhook: Webhook = {
  id: randomUUID(),
  project_id: randomUUID(),
  url: "https://example.com/",
  events: ["deploy.started"],
  created_at: "2026-01-01T00:00:00.000Z",
};

function newEvent() {
  const message = parseDeploymentEvent(JSON.stringify(eventOf(webhook.project_id)));
  if (!message.ok) throw new Error(message.reason);
  return message.event;
}

test("a new delivery is pending, has no plan and no place, and is kept for 30 days", () => {
  const event = newEvent();
  const receivedAt = new Date("2026-01-02T03:04:04.000Z");
  const created = {
    webhook_id: webhook.id,
    id: deliveryIdOf(event, webhook.id),
    project_id: webhook.project_id,
    event: "deploy.started",
    deployment_id: event.deployment_id,
    body: event.body,
    status: "pending",
    created_at: "2026-01-02T03:04:05.678Z",
    attempt_count: 0,
    expires_at: Date.parse("2026-02-01T03:04:05Z") / 1000,
  };
  expect(createDelivery(event, webhook, now, receivedAt)).toEqual({
    ...created,
    event_received_at: "2026-01-02T03:04:04.000Z",
  });
  // Without a time of receipt it is a test delivery.
  expect(createDelivery(event, webhook, now)).toEqual({ ...created, test: true, trigger: "test" });
});

test("users wait for redeliveries and test deliveries, not for recoveries and retries", () => {
  const triggers = ["redeliver", "test", "recover", "schedule"] as const;
  expect(triggers.map((trigger) => isOnRequest({ trigger }))).toEqual([true, true, false, false]);
  expect(isOnRequest({})).toBe(false);
});

describe("withAttempt", () => {
  const attemptOf = (number: number, changes: Partial<Attempt> = {}): Attempt => {
    const response = {
      status_code: 308,
      error_code: "http_status" as const,
      response_excerpt: "x",
      response_headers: { server: "x" },
      detail: "https://new.example",
    };
    return { number, at: "2026-03-01T00:00:00.000Z", duration_ms: 3, trigger: "redeliver", ...response, ...changes };
  };

  test("keeps the responses of the newest three attempts only, and everything else of all", () => {
    let attempts: Attempt[] | undefined;
    for (let number = 1; number <= 5; number++) attempts = withAttempt({ attempts }, attemptOf(number));
    const { response_excerpt, response_headers, detail, ...older } = attemptOf(1);
    expect(attempts).toEqual([older, { ...older, number: 2 }, attemptOf(3), attemptOf(4), attemptOf(5)]);
  });

  test("keeps the cause of an older attempt without a response, which is short", () => {
    const first = attemptOf(1, { status_code: undefined, error_code: "tls_error", detail: "CERT_HAS_EXPIRED" });
    const attempts = withAttempt({ attempts: [first, attemptOf(2), attemptOf(3)] }, attemptOf(4));
    expect(attempts[0]).toMatchObject({ error_code: "tls_error", detail: "CERT_HAS_EXPIRED" });
    expect(attempts[0]).not.toHaveProperty("response_excerpt");
  });
});
