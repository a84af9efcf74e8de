import type { DeploymentEvent, EventName } from "../../client/src/client.ts";
import { printable, type Style, styled } from "./terminal.ts";

/* Deployment events as text for a person. */

const styleByEvent: Record<EventName, Style> = {
  "deploy.started": "yellow",
  "deploy.succeeded": "green",
  "deploy.failed": "red",
};

/** The fields of `data` that say where the app is, or why it failed, in the order of preference. */
const INFORMATIVE = ["url", "reason", "error", "message"];

/** Returns the text of `data` that says most about the event; undefined when it has none. */
export function detailOf({ payload }: DeploymentEvent): string | undefined {
  const data = new Map<string, unknown>(Object.entries(payload.data ?? {}));
  const texts = INFORMATIVE.map((field) => data.get(field)).filter((value) => typeof value === "string");
  return texts.find((text) => text !== "");
}

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
