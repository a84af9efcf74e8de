import type { Client, DeploymentEvent } from "../../../client/src/client.ts";
import { type Deployment, deploymentsOf } from "../../../client/src/deployment-timeline.ts";

/** Upper bound on the events that a list of deployments reads. */
const MAX_LISTED_EVENTS = 1_000;

export async function newestDeployments(api: Client, projectId: string, limit: number): Promise<Deployment[]> {
  const events: DeploymentEvent[] = [];
  const ids = new Set<string>();
  for await (const event of api.eachEvent(projectId, { limit: 100 })) {
    events.push(event);
    ids.add(event.deployment_id);
    // The starts of the last ones may follow.
    if (ids.size > 2 * limit || events.length === MAX_LISTED_EVENTS) break;
  }
  return deploymentsOf(events).slice(0, limit);
}
