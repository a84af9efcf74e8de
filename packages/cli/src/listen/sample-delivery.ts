import { randomBytes, randomUUID } from "node:crypto";
import type { WebhookEventName } from "../../../client/src/client.ts";
import type { LocalDelivery } from "./signed-delivery.ts";

/** The data of the service's own samples. */
const sampleData: Record<WebhookEventName, (now: Date) => object> = {
  "deploy.started": () => ({}),
  "deploy.succeeded": () => ({ url: "https://demo.example.com", status: "running" }),
  "deploy.failed": () => ({ reason: "health check timed out" }),
  "webhook.failing": aboutWebhook,
  "webhook.disabled": (now) => ({ ...aboutWebhook(now), reason: "failing" }),
};

function aboutWebhook(now: Date): object {
  return {
    webhook_id: randomUUID(),
    host: "example.com",
    failing_since: new Date(now.getTime() - 1_800_000).toISOString(),
    status_code: 500,
    error_code: "http_status",
  };
}

/**
 * Creates a test delivery of a sample event, with a new id that begins with its time.
 * @param data of the event; absent = that of the service's sample
 */
export function sampleDelivery(
  event: WebhookEventName,
  projectId: string,
  now: Date,
  data: object = sampleData[event](now),
): LocalDelivery {
  const payload = {
    event,
    project_id: projectId,
    deployment_id: event.startsWith("deploy.") ? randomUUID() : null,
    timestamp: now.toISOString(),
    data: { ...data, test: true },
  };
  return { id: newDeliveryId(now), event, test: true, body: Buffer.from(JSON.stringify(payload)) };
}

/** UUID version 7: https://www.rfc-editor.org/rfc/rfc9562#section-5.7 */
function newDeliveryId(now: Date): string {
  const time = now.getTime().toString(16).padStart(12, "0");
  const random = randomBytes(9).toString("hex");
  return `${time.slice(0, 8)}-${time.slice(8)}-7${random.slice(0, 3)}-8${random.slice(3, 6)}-${random.slice(6)}`;
}
