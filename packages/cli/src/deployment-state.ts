import type { DeploymentEvent } from "../../client/src/client.ts";
import { type DeploymentState, stateAfterEvent } from "../../client/src/deployment-timeline.ts";
import { exitCodes } from "./exit-codes.ts";

/** The exit code of `svc deployments wait` in a state; undefined = the wait continues. A new state does not compile without one. */
const exitCodeIn: Record<DeploymentState, number | undefined> = {
  running: undefined,
  succeeded: exitCodes.ok,
  failed: exitCodes.failed,
  unknown: undefined,
};

/** Returns the exit code after an event; undefined = it does not end the deployment. */
export const exitCodeAfter = (event: Pick<DeploymentEvent, "event">): number | undefined =>
  exitCodeIn[stateAfterEvent(event)];
