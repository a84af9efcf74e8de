import {
  type CreateFault,
  crashingCalls,
  deadLetter,
  failingRequests,
  pausedFanOut,
  pausedSweep,
  rejectedEvent,
} from "./faults.ts";

/*
 * The alarms that a real fault can ring safely. For the others, docs/runbook.md has a command that writes a value of the metric
 * or sets the state.
 */

export interface Drill {
  /** What the drill does. */
  does: string;
  /** What it costs, and what users notice. */
  costs: string;
  fault: CreateFault;
  /** Max wait until the alarm rings. SQS reports an idle queue up to 15 minutes late. */
  waitMinutes: number;
  /** Users of the stage would notice: not done where data is kept. */
  disturbs?: true;
}

const fewCalls = "a few calls";
const oneMessage = "one message, deleted at the end";

export const drills = {
  "events-dead-letters": {
    does: "sends an event that is not valid; the fan-out moves it to the dead-letter queue",
    costs: oneMessage,
    fault: rejectedEvent,
    waitMinutes: 25,
  },
  "deliveries-dead-letters": {
    does: "puts a message into the dead-letter queue of the sender, which would take ten hours for it",
    costs: oneMessage,
    fault: deadLetter,
    waitMinutes: 25,
  },
  "events-waiting": {
    does: "disables the event source mapping of the fan-out and sends an event that is not valid",
    costs: "no webhook is called for up to 30 minutes; queues-stuck rings too",
    fault: pausedFanOut,
    waitMinutes: 30,
    disturbs: true,
  },
  "queues-stuck": {
    does: "disables the event source mapping of the fan-out and sends an event that is not valid",
    costs: "no webhook is called for up to 25 minutes",
    fault: pausedFanOut,
    waitMinutes: 25,
    disturbs: true,
  },
  "sweep-not-running": {
    does: "disables the schedule of the sweep",
    costs: "retries after more than 15 minutes wait for up to 15 minutes",
    fault: pausedSweep,
    waitMinutes: 15,
    disturbs: true,
  },
  "api-errors": {
    does: "reserves a concurrency of 0 for the endpoint that revokes leaked credentials, and calls it 12 times a minute",
    costs: "leaked keys cannot be revoked for up to 15 minutes; endpoint-errors rings too",
    fault: failingRequests,
    waitMinutes: 15,
    disturbs: true,
  },
  "delivery-errors": {
    does: "invokes the fan-out with an input that no queue sends, at which it crashes, six times a minute",
    costs: `${fewCalls}, and errors in the log of the fan-out`,
    fault: crashingCalls("WorkersDeliveriesFanOutFunction", 6),
    waitMinutes: 20,
  },
  "endpoint-errors": {
    does: "the same as api-errors",
    costs: "leaked keys cannot be revoked for up to 15 minutes; api-errors may ring too",
    fault: failingRequests,
    waitMinutes: 15,
    disturbs: true,
  },
  "invoked-function-errors": {
    does: "invokes the function that adds members, without input, four times a minute",
    costs: `${fewCalls}, and errors in the log of the function`,
    fault: crashingCalls("WorkersProjectsUpsertMemberFunction", 4),
    waitMinutes: 15,
  },
} as const satisfies Record<string, Drill>;

export type DrillName = keyof typeof drills;

export const isDrillName = (name: string): name is DrillName => Object.hasOwn(drills, name);
