import { type CreateFault, crashingCalls, deadLetter, rejectedEvent } from "./faults.ts";

/*
 * The alarms that a real fault can ring without a user noticing it. For the others, docs/runbook.md has a command that stops a
 * part of the service, writes a value of the metric, or sets the state.
 */

export interface Drill {
  /** What the drill does. */
  does: string;
  /** What it costs. */
  costs: string;
  fault: CreateFault;
  /** Max wait until the alarm rings. SQS reports an idle queue up to 15 minutes late. */
  waitMinutes: number;
}

export const drills = {
  "events-dead-letters": {
    does: "sends an event that is not valid; the fan-out moves it to the dead-letter queue",
    costs: "one message, deleted at the end",
    fault: rejectedEvent,
    waitMinutes: 25,
  },
  "deliveries-dead-letters": {
    does: "puts a message into the dead-letter queue of the sender, which would take ten hours for it",
    costs: "one message, deleted at the end",
    fault: deadLetter,
    waitMinutes: 25,
  },
  "delivery-errors": {
    does: "invokes the fan-out with an input that no queue sends, at which it crashes, six times a minute",
    costs: "a few calls, and errors in the log of the fan-out",
    fault: crashingCalls("WorkersDeliveriesFanOutFunction", 6),
    waitMinutes: 20,
  },
  "invoked-function-errors": {
    does: "invokes the function that adds members, without input, four times a minute",
    costs: "a few calls, and errors in the log of the function",
    fault: crashingCalls("WorkersProjectsUpsertMemberFunction", 4),
    waitMinutes: 15,
  },
} as const satisfies Record<string, Drill>;

export type DrillName = keyof typeof drills;

export const isDrillName = (name: string): name is DrillName => Object.hasOwn(drills, name);
