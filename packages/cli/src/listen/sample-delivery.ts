import { randomBytes, randomUUID } from "node:crypto";
import type { EventName } from "../../../client/src/client.ts";
import type { LocalDelivery } from "./signed-delivery.ts";

/** The data of the service's own samples. */
const sampleData: Record<EventName, object> = {
  "deploy.started": {},
  "deploy.succeeded": { url: "https://demo.example.com", status: "running" },
  "deploy.failed": { reason: "health check timed out" },
};

/** Creates a delivery of a sample event, with a new id that begins with its time. */
export function sampleDelivery(event: EventName, projectId: string, now: Date): LocalDelivery {
  const payload = {
    event,
    project_id: projectId,
    deployment_id: randomUUID(),
    timestamp: now.toISOString(),
    data: sampleData[event],
  };
  return { id: newDeliveryId(now), event, body: Buffer.from(JSON.stringify(payload)) };
}

/** UUID version 7: https://www.rfc-editor.org/rfc/rfc9562#section-5.7 */
function newDeliveryId(now: Date): string {
  const time = now.getTime().toString(16).padStart(12, "0");
  const random = randomBytes(9).toString("hex");
  return `${time.slice(0, 8)}-${time.slice(8)}-7${random.slice(0, 3)}-8${random.slice(3, 6)}-${random.slice(6)}`;
}
