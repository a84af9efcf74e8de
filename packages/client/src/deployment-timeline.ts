import type { DeploymentEvent } from "./client.ts";
import { deploymentOutcomes, deploymentStates } from "./values.ts";

/* Deployments, made of the events of a project's feed. */

/** What the last event says, such as `running`; after an event that a platform has added, its name in words, without `deploy`. */
export type DeploymentState = string;

/** Returns the state of a deployment after an event. */
export const stateAfterEvent = ({ event }: Pick<DeploymentEvent, "event">): DeploymentState =>
  textOf(deploymentStates, event) ?? event.replace(/^deploy\./, "").replace(/[._]/g, " ");

const textOf = <Value>(values: Record<string, Value>, name: string): Value | undefined =>
  Object.hasOwn(values, name) ? values[name] : undefined;

/** Whether a deployment continues, has ended well, or has not. */
export type Outcome = (typeof deploymentOutcomes)[keyof typeof deploymentOutcomes] | "unknown";

/** Returns the outcome of a deployment in a state. */
export const outcomeIn = (state: DeploymentState): Outcome => textOf<Outcome>(deploymentOutcomes, state) ?? "unknown";

/** One event of a deployment. */
export interface DeploymentStep {
  event: DeploymentEvent;
  /** Milliseconds since the step before; null for the first one. */
  sincePreviousMs: number | null;
}

export interface Deployment {
  id: string;
  /** By the newest event. */
  state: DeploymentState;
  /** Oldest first, by the time of the event. */
  steps: DeploymentStep[];
  /** Milliseconds from the latest start to the end after it; null while it runs, or if its start is not loaded. */
  durationMs: number | null;
}

/** Groups events by deployment. The deployment with the newest event is first. The order of the events does not matter. */
export function deploymentsOf(events: DeploymentEvent[]): Deployment[] {
  const byId = new Map<string, DeploymentEvent[]>();
  for (const event of [...events].sort(byTime)) {
    const known = byId.get(event.deployment_id);
    if (known) known.push(event);
    else byId.set(event.deployment_id, [event]);
  }
  const newestOf = ({ steps }: Deployment) => timeOf(steps.at(-1)?.event);
  return [...byId]
    .map(([id, ofDeployment]) => toDeployment(id, ofDeployment))
    .sort((a, b) => newestOf(b) - newestOf(a));
}

function toDeployment(id: string, events: DeploymentEvent[]): Deployment {
  const steps = events.map((event, index) => ({
    event,
    sincePreviousMs: index === 0 ? null : timeOf(event) - timeOf(events[index - 1]),
  }));
  const last = events.at(-1);
  const started = events.findLast(({ event }) => event === "deploy.started");
  const hasEnded = last !== undefined && started !== undefined && last !== started;
  return {
    id,
    state: last ? stateAfterEvent(last) : "unknown",
    steps,
    durationMs: hasEnded ? timeOf(last) - timeOf(started) : null,
  };
}

const timeOf = (event: DeploymentEvent | undefined): number => Date.parse(event?.timestamp ?? "");

/**
 * Compares events by their time, oldest first. At the same time, a start is before an end: many pipelines write whole seconds,
 * and the ids of events with equal times are in no order.
 */
export function byTime(a: DeploymentEvent, b: DeploymentEvent): number {
  const isStart = ({ event }: DeploymentEvent) => (event === "deploy.started" ? 0 : 1);
  return timeOf(a) - timeOf(b) || isStart(a) - isStart(b) || (a.id < b.id ? -1 : 1);
}

/** Adds events to those that are known. The feed may return an event again: it keeps its id. */
export function mergeEvents(known: DeploymentEvent[], added: DeploymentEvent[]): DeploymentEvent[] {
  return [...new Map([...known, ...added].map((event) => [event.id, event])).values()];
}
