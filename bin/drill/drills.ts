import {
  type CreateFault,
  crashingCalls,
  deadLetter,
  failingRequests,
  metricValues,
  pausedFanOut,
  pausedSweep,
  rejectedEvent,
  throttledCalls,
} from "./faults.ts";

/*
 * One drill per alarm: how it is rung on purpose. The alarms that differ only in a number, and those for gradual deployments,
 * have one drill together.
 */

/**
 * What a drill proves if the alarm rings:
 * - `fault`: a real fault reaches the alarm and its topic.
 * - `metric`: a value of the metric reaches them. That the functions write the metric is not proven.
 * - `state`: only that the alarm notifies its topic. The state is set by hand, because a real fault is not safe.
 * - `by hand`: nothing is done; `does` says how to prove it.
 */
export type Proof = "fault" | "metric" | "state" | "by hand";

interface Common {
  /** What the drill does, or for `state` why nothing more is safe. */
  does: string;
  /** What it costs, and what users notice. */
  costs: string;
}

export type Drill = Common &
  (
    | { proof: "state" | "by hand" }
    | {
        proof: "fault" | "metric";
        fault: CreateFault;
        /** Max wait until the alarm rings. SQS reports an idle queue up to 15 minutes late. */
        waitMinutes: number;
        /** Users of the stage would notice: where data is kept, the state is set instead. */
        disturbs?: true;
      }
  );

const fewCalls = "a few calls";
const oneNotification = "one notification";
const oneMessage = "one message, deleted at the end";
const graphs = "wrong values in the graphs of the dashboard for up to an hour";

export const drills = {
  "events-dead-letters": {
    proof: "fault",
    does: "sends an event that is not valid; the fan-out moves it to the dead-letter queue",
    costs: oneMessage,
    fault: rejectedEvent,
    waitMinutes: 25,
  },
  "deliveries-dead-letters": {
    proof: "fault",
    does: "puts a message into the dead-letter queue; the sender would take ten hours for it",
    costs: oneMessage,
    fault: deadLetter("deliveries"),
    waitMinutes: 25,
  },
  "slow-deliveries-dead-letters": {
    proof: "fault",
    does: "puts a message into the dead-letter queue; the slow sender would take ten hours for it",
    costs: oneMessage,
    fault: deadLetter("slowDeliveries"),
    waitMinutes: 25,
  },
  "events-waiting": {
    proof: "fault",
    does: "disables the event source mapping of the fan-out and sends an event that is not valid",
    costs: "no webhook is called for up to 30 minutes; queues-stuck rings too",
    fault: pausedFanOut,
    waitMinutes: 30,
    disturbs: true,
  },
  "deliveries-waiting": {
    proof: "state",
    does: "a real fault would stop the sender for 37 minutes",
    costs: oneNotification,
  },
  "noisy-deliveries-waiting": {
    proof: "state",
    does: "a real fault would stop the sender for 37 minutes",
    costs: oneNotification,
  },
  "slow-deliveries-waiting": {
    proof: "state",
    does: "a real fault would stop the slow sender for 37 minutes",
    costs: oneNotification,
  },
  "messages-failing": {
    proof: "metric",
    does: "writes FailedMessageAge = 700 every minute; a message that really fails would do so for ten hours",
    costs: graphs,
    fault: metricValues("failedMessageAge", 700),
    waitMinutes: 20,
  },
  "queues-stuck": {
    proof: "fault",
    does: "disables the event source mapping of the fan-out and sends an event that is not valid",
    costs: "no webhook is called for up to 25 minutes",
    fault: pausedFanOut,
    waitMinutes: 25,
    disturbs: true,
  },
  "first-attempts-failing": {
    proof: "metric",
    does: "writes FirstAttemptSuccess = 0 sixty times a minute; a real fault would need many receivers that fail at once",
    costs: graphs,
    fault: metricValues("firstAttemptSuccess", 0, 60),
    waitMinutes: 25,
    disturbs: true,
  },
  "first-attempts-late": {
    proof: "metric",
    does: "writes EventToFirstAttempt = 20 s a hundred times a minute",
    costs: `${graphs}; the objective of the month counts them; the alarm ends after an hour`,
    fault: metricValues("eventToFirstAttempt", 20_000, 100),
    waitMinutes: 75,
    disturbs: true,
  },
  "first-attempts-slow": {
    proof: "metric",
    does: "writes EventToFirstAttempt = 20 s a hundred times a minute",
    costs: `${graphs}; the objective of the month counts them; first-attempts-late may ring too`,
    fault: metricValues("eventToFirstAttempt", 20_000, 100),
    waitMinutes: 30,
    disturbs: true,
  },
  "sweep-late": {
    proof: "metric",
    does: "writes SweepLag = 400 every minute; a real fault would delay retries",
    costs: graphs,
    fault: metricValues("sweepLag", 400),
    waitMinutes: 10,
  },
  "sweep-not-running": {
    proof: "fault",
    does: "disables the schedule of the sweep",
    costs: "retries after more than 15 minutes wait for up to 15 minutes",
    fault: pausedSweep,
    waitMinutes: 15,
    disturbs: true,
  },
  "notifications-late": {
    proof: "metric",
    does: "writes NotificationLag = 1,000 every minute; a real fault would delay notifications",
    costs: graphs,
    fault: metricValues("notificationLag", 1_000),
    waitMinutes: 30,
  },
  "api-errors": {
    proof: "fault",
    does: "reserves a concurrency of 0 for the endpoint that revokes leaked credentials, and calls it 12 times a minute",
    costs: "leaked keys cannot be revoked for up to 15 minutes; endpoint-errors rings too",
    fault: failingRequests,
    waitMinutes: 15,
    disturbs: true,
  },
  "api-slow": { proof: "state", does: "a real fault would need a slow API", costs: oneNotification },
  "authorizer-errors": {
    proof: "state",
    does: "a real fault would reject the requests of users",
    costs: oneNotification,
  },
  "rejected-credentials": {
    proof: "metric",
    does: "writes RejectedCredentials = 1,500 every minute; a real fault would be a flood of requests",
    costs: `${graphs}; meanwhile a gradual deployment of the authorizer does not notice that valid credentials are rejected`,
    fault: metricValues("rejectedCredentials", 1_500),
    waitMinutes: 20,
  },
  "delivery-errors": {
    proof: "fault",
    does: "invokes the fan-out with an input that no queue sends, at which it crashes, six times a minute",
    costs: `${fewCalls}, and errors in the log of the fan-out`,
    fault: crashingCalls("WorkersDeliveriesFanOutFunction", 6),
    waitMinutes: 20,
  },
  "endpoint-errors": {
    proof: "fault",
    does: "the same as api-errors",
    costs: "leaked keys cannot be revoked for up to 15 minutes; api-errors may ring too",
    fault: failingRequests,
    waitMinutes: 15,
    disturbs: true,
  },
  "invoked-function-errors": {
    proof: "fault",
    does: "invokes the function that adds members, without input, four times a minute",
    costs: `${fewCalls}, and errors in the log of the function`,
    fault: crashingCalls("WorkersProjectsUpsertMemberFunction", 4),
    waitMinutes: 15,
  },
  "function-throttles": {
    proof: "fault",
    does: "reserves a concurrency of 0 for the sweep, and invokes it",
    costs: "retries after more than 15 minutes wait for up to 15 minutes; sweep-not-running may ring too",
    fault: throttledCalls("WorkersDeliveriesSweepFunction", 12),
    waitMinutes: 15,
    disturbs: true,
  },
  "concurrency-high": {
    proof: "state",
    does: "a real fault would use up the concurrency of the account",
    costs: oneNotification,
  },
  "table-read-throttles": {
    proof: "state",
    does: "a real fault would throttle a table",
    costs: oneNotification,
  },
  "table-write-throttles": {
    proof: "state",
    does: "a real fault would throttle a table",
    costs: oneNotification,
  },
  "rolled-back": {
    proof: "by hand",
    does: "these alarms notify no topic: deploy a sender that throws to a stage like prod, and see CodeDeploy roll it back",
    costs: "a tenth of the deliveries of that stage, for some minutes",
  },
} as const satisfies Record<string, Drill>;

export type DrillName = keyof typeof drills;

export const isDrillName = (name: string): name is DrillName => Object.hasOwn(drills, name);
