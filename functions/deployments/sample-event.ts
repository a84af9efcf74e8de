import type { EventName } from "./deployment-event.ts";

interface SampleFields {
  projectId: string;
  deploymentId: string;
  now: Date;
  /** Public URL of the app, for `deploy.succeeded`. */
  url?: string | undefined;
}

/** Creates a message as the pipeline would put it on the events queue, for trials and tests. */
export function sampleEvent(event: EventName, { projectId, deploymentId, now, url }: SampleFields) {
  const data: Record<EventName, object> = {
    "deploy.started": {},
    "deploy.succeeded": { url: url ?? "https://demo.example.com", status: "running" },
    "deploy.failed": { reason: "health check timed out" },
  };
  return {
    event,
    project_id: projectId,
    deployment_id: deploymentId,
    timestamp: now.toISOString(),
    data: data[event],
  };
}
