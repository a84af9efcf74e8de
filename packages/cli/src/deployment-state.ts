import type { DeploymentEvent, EventName } from "../../client/src/client.ts";
import { exitCodes } from "./exit-codes.ts";

/* The state of a deployment, by its events. Pure. */

/**
 * The exit code of `svc deployments wait` in a state; undefined = the wait continues. A new state does not compile
 * without one. `unknown`: after an event that a later version of the API has added.
 */
const exitCodeIn = { running: undefined, succeeded: exitCodes.ok, failed: exitCodes.failed, unknown: undefined };

export type DeploymentState = keyof typeof exitCodeIn;
export const deploymentStates = Object.keys(exitCodeIn) as DeploymentState[];

const stateAfter: Record<EventName, DeploymentState> = {
  "deploy.started": "running",
  "deploy.succeeded": "succeeded",
  "deploy.failed": "failed",
};

/** Returns the state of a deployment after an event. */
export const stateAfterEvent = ({ event }: Pick<DeploymentEvent, "event">): DeploymentState =>
  stateAfter[event] ?? "unknown";

/** Returns the exit code after an event; undefined = it does not end the deployment. */
export const exitCodeAfter = (event: Pick<DeploymentEvent, "event">): number | undefined =>
  exitCodeIn[stateAfterEvent(event)];

/**
 * Compares events of one deployment by their time, oldest first. At the same time, a start is before an end: many pipelines
 * write whole seconds, and the ids of events with equal times are in no order.
 */
export function byTime(a: DeploymentEvent, b: DeploymentEvent): number {
  const isEnd = (event: DeploymentEvent) => (exitCodeAfter(event) === undefined ? 0 : 1);
  return Date.parse(a.timestamp) - Date.parse(b.timestamp) || isEnd(a) - isEnd(b);
}
