import type { DeploymentEvent, EventName } from "../../client/src/client.ts";

/* The state of a deployment, by its events. Pure. */

export type DeploymentState = "running" | "succeeded" | "failed";

const stateAfter: Record<EventName, DeploymentState> = {
  "deploy.started": "running",
  "deploy.succeeded": "succeeded",
  "deploy.failed": "failed",
};

/** Returns the state of a deployment after an event. A later version of the API may add events, which end none. */
export const stateAfterEvent = ({ event }: Pick<DeploymentEvent, "event">): DeploymentState =>
  stateAfter[event] ?? "running";

/**
 * Compares events of one deployment by their time, oldest first. At the same time, a start is before an end: many pipelines
 * write whole seconds, and the ids of events with equal times are in no order.
 */
export function byTime(a: DeploymentEvent, b: DeploymentEvent): number {
  const isEnd = (event: DeploymentEvent) => (stateAfterEvent(event) === "running" ? 0 : 1);
  return Date.parse(a.timestamp) - Date.parse(b.timestamp) || isEnd(a) - isEnd(b);
}
