import type { Client, DeploymentEvent } from "../../../client/src/client.ts";
import { byTime, type Outcome, outcomeIn, stateAfterEvent } from "../../../client/src/deployment-timeline.ts";
import { CommandError, exitCodes } from "../terminal/exit-codes.ts";
import { jsonText, note, print } from "../terminal/terminal.ts";
import { eventLine } from "../views/event-view.ts";
import { eachNewEvent } from "./follow-events.ts";

/** The exit code by the outcome; undefined = the wait continues. */
const exitCodeAt: Record<Outcome, number | undefined> = {
  open: undefined,
  good: exitCodes.ok,
  bad: exitCodes.failed,
  unknown: undefined,
};

/** Returns the exit code after an event; undefined = it does not end the deployment. */
export const exitCodeAfter = (event: Pick<DeploymentEvent, "event">): number | undefined =>
  exitCodeAt[outcomeIn(stateAfterEvent(event))];

interface Wait {
  /** Finds the project: within the timeout, because it may call the API. */
  open: () => Promise<{ api: Client; projectId: string }>;
  deploymentId: string;
  /** The longest wait, as text, and the signal that ends it. The client has the same signal. */
  timeout: { text: string; signal: AbortSignal };
  json: boolean;
}

/** Events of the deployment that are read at first. Those with the same time are among them. */
const FIRST_PAGE_SIZE = 10;

/**
 * Waits until a deployment has ended, and prints the event that says so. Sets the exit code: 1 if it failed.
 * @throws CommandError with exit code 124 on a timeout
 */
export async function waitForDeployment(wait: Wait): Promise<void> {
  const { deploymentId, timeout, json } = wait;
  let latest: DeploymentEvent | undefined;
  try {
    const { api, projectId } = await wait.open();
    for await (const event of eventsOf(api, projectId, wait)) {
      // The event of an earlier attempt may arrive late.
      if (latest !== undefined && byTime(event, latest) < 0) continue;
      latest = event;
      if (exitCodeAfter(event) !== undefined) break;
      note(eventLine(event));
    }
  } catch (error) {
    if (!timeout.signal.aborted) throw error;
    throw timeoutError(deploymentId, timeout.text, latest);
  }
  if (latest === undefined) return;
  print(json ? jsonText(latest) : eventLine(latest));
  process.exitCode = exitCodeAfter(latest);
}

/** Yields the newest event of a deployment, if it has one, and then those that are new. */
async function* eventsOf(
  api: Client,
  projectId: string,
  { deploymentId, timeout: { text, signal } }: Wait,
): AsyncGenerator<DeploymentEvent, void, void> {
  const query = { deployment_id: deploymentId };
  const first = await api.listEvents(projectId, { ...query, limit: FIRST_PAGE_SIZE });
  let page = first;
  while (page.items.length === 0 && page.nextCursor !== undefined) {
    page = await api.listEvents(projectId, { ...query, limit: FIRST_PAGE_SIZE, after: page.nextCursor });
  }
  yield* page.items.toSorted(byTime).slice(-1);
  note(`Waiting for the deployment ${deploymentId} to end, at most ${text}.`);
  yield* eachNewEvent(api, projectId, { query, latest: { ...first, items: page.items }, signal });
}

function timeoutError(deploymentId: string, text: string, latest: DeploymentEvent | undefined): CommandError {
  const [message, advice] =
    latest === undefined
      ? [
          `No event of the deployment ${deploymentId} within ${text}.`,
          "Check the id and the project: svc deployments watch",
        ]
      : [
          `The deployment ${deploymentId} did not end within ${text}. Its latest event is ${latest.event} of ${latest.timestamp}.`,
          outcomeIn(stateAfterEvent(latest)) === "unknown"
            ? "It may have ended: the platform has added this event, and svc does not know whether a deployment ends with it."
            : "Wait longer: --timeout 1h",
        ];
  return new CommandError(exitCodes.timeout, message, advice);
}
