import type { EventName } from "./deployment-event.ts";

interface Parts {
  projectId: string;
  deploymentId: string;
  now: Date;
  /** Public URL of the app, for `deploy.succeeded`. */
  url?: string | undefined;
}

/** A deployment event as the pipeline would put it on the queue, for trying things out. */
export function sampleEvent(event: EventName, { projectId, deploymentId, now, url }: Parts) {
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
