import { randomBytes, randomUUID } from "node:crypto";
import type { WebhookEventName } from "../../../client/src/client.ts";
import { samplePayloads } from "../../../client/src/values.ts";
import type { LocalDelivery } from "./signed-delivery.ts";

/**
 * Creates a test delivery of a sample event, with a new id that begins with its time.
 * @param data replaces fields of the service's example
 */
export function sampleDelivery(event: WebhookEventName, projectId: string, now: Date, data?: object): LocalDelivery {
  const samples: Record<string, { deployment_id: string | null; data: object }> = samplePayloads;
  const example = samples[event] ?? { event, deployment_id: "", data: {} };
  const payload = {
    ...example,
    project_id: projectId,
    deployment_id: example.deployment_id === null ? null : randomUUID(),
    timestamp: now.toISOString(),
    data: { ...example.data, ...data, test: true },
  };
  return { id: newDeliveryId(now), event, test: true, body: Buffer.from(JSON.stringify(payload)) };
}

/** UUID version 7: https://www.rfc-editor.org/rfc/rfc9562#section-5.7 */
function newDeliveryId(now: Date): string {
  const time = now.getTime().toString(16).padStart(12, "0");
  const random = randomBytes(9).toString("hex");
  return `${time.slice(0, 8)}-${time.slice(8)}-7${random.slice(0, 3)}-8${random.slice(3, 6)}-${random.slice(6)}`;
}
