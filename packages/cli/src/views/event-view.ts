import type { DeploymentEvent } from "../../../client/src/client.ts";
import { type DeploymentState, stateAfterEvent } from "../../../client/src/deployment-timeline.ts";
import { detailOf } from "../../../client/src/event-detail.ts";
import { printable, type Style, styled } from "../terminal/terminal.ts";

/* Deployment events as text for a person. */

/** By the state of the deployment after the event. An event of a later version of the API has no style. */
const styleByState: Record<DeploymentState, Style | undefined> = {
  running: "yellow",
  succeeded: "green",
  failed: "red",
  unknown: undefined,
};

/** Formats an event on one line. */
export function eventLine(event: DeploymentEvent): string {
  const detail = detailOf(event);
  const name = printable(event.event.padEnd("deploy.succeeded".length));
  const style = styleByState[stateAfterEvent(event)];
  const parts = [
    styled("dim", printable(event.timestamp)),
    style ? styled(style, name) : name,
    event.deployment_id,
    ...(detail === undefined ? [] : [printable(detail)]),
  ];
  return parts.join("  ");
}
