import type { DeploymentEvent } from "../../../client/src/client.ts";
import { type Outcome, outcomeIn, stateAfterEvent } from "../../../client/src/deployment-timeline.ts";
import { detailOf } from "../../../client/src/event-detail.ts";
import { printable, type Style, styled } from "../terminal/terminal.ts";

/* Deployment events as text for a person. */

/** By the outcome of the deployment. An event of a later version of the API has no style. */
const styles: Record<Outcome, Style | undefined> = { open: "yellow", good: "green", bad: "red", unknown: undefined };

/** Formats an event on one line. */
export function eventLine(event: DeploymentEvent): string {
  const detail = detailOf(event);
  const name = printable(event.event.padEnd("deploy.succeeded".length));
  const style = styles[outcomeIn(stateAfterEvent(event))];
  const parts = [
    styled("dim", printable(event.timestamp)),
    style ? styled(style, name) : name,
    event.deployment_id,
    ...(detail === undefined ? [] : [printable(detail)]),
  ];
  return parts.join("  ");
}
