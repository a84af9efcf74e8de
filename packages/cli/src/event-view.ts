import type { DeploymentEvent, EventName } from "../../client/src/client.ts";
import { detailOf } from "../../client/src/event-detail.ts";
import { printable, type Style, styled } from "./terminal.ts";

/* Deployment events as text for a person. */

const styleByEvent: Record<EventName, Style> = {
  "deploy.started": "yellow",
  "deploy.succeeded": "green",
  "deploy.failed": "red",
};

/** Formats an event on one line. */
export function eventLine(event: DeploymentEvent): string {
  const detail = detailOf(event);
  const name = event.event.padEnd("deploy.succeeded".length);
  const parts = [
    styled("dim", printable(event.timestamp)),
    // An event of a later version of the API has no style.
    event.event in styleByEvent ? styled(styleByEvent[event.event], name) : printable(name),
    event.deployment_id,
    ...(detail === undefined ? [] : [printable(detail)]),
  ];
  return parts.join("  ");
}
