import type * as cloudwatch from "aws-cdk-lib/aws-cloudwatch";
import * as lambda from "aws-cdk-lib/aws-lambda";
import { KEY_NOT_LOOKED_UP } from "../../functions/foundation/manifest/metrics.ts";
import { type QueueKey, type QueueRow, queues as queueRows } from "../../functions/foundation/manifest/queues.ts";
import { type WorkerRow, workerRows } from "../../functions/foundation/manifest/workers.ts";
import type { Queues } from "../queues.ts";
import type { AlarmRow } from "./alarm.ts";
import {
  AVERAGE,
  claimedConcurrency,
  FIVE_MINUTES,
  HOUR,
  MAXIMUM,
  MINUTE,
  math,
  ownMetric,
  quietDeliveriesAge,
  SAMPLE_COUNT,
  SUM,
  serverErrors,
  sum,
  TEN_MINUTES,
} from "./metrics.ts";
import { functionFor, type MonitoredResources } from "./monitored-resources.ts";

/**
 * Returns the alarms of a stage. An alarm is one row here, one section in docs/runbook.md and one row in
 * test/lib/observability/alarms.test.ts.
 *
 * At most ten page, and each for a fault that no other page shows: events or deliveries wait, fail or may be lost, users get
 * errors. At most six are tickets: what becomes a page later, and what only some callers notice. Everything else that helps
 * to find a cause is a graph of the dashboard.
 *
 * CloudWatch charges by the number of metrics that alarms read. Prefer one more term in an expression to one more
 * alarm, and a ratio with a minimum count to a bare count. No row uses anomaly detection, which costs three metrics per
 * alarm, needs two weeks of data, and learns a slow decline as normal.
 */
export function alarmRows({ stage, queues, api, functions }: MonitoredResources): AlarmRow[] {
  const deadLettersOf = (key: QueueKey) =>
    queues[key].deadLetters.metricApproximateNumberOfMessagesVisible({ period: MINUTE, statistic: MAXIMUM });
  // Strangers who invent keys of an issuer cause 503 as they like. That is a ticket, as of other rejected credentials.
  const serverErrorsOf = {
    all: serverErrors(stage),
    invented: ownMetric(stage, "rejectedCredentials", { statistic: SUM, dimensions: { reason: KEY_NOT_LOOKED_UP } }),
  };
  // Lambda counts crashes, timeouts and exhausted memory as Errors, but not the failures that a function handles. Those of
  // endpoints get a 5xx response, which the access log counts.
  const errorsOf = (isCounted: (row: WorkerRow) => boolean) =>
    workerRows.filter(isCounted).map(({ id }) => functionFor(functions, id).metricErrors({ statistic: SUM }));
  return [
    {
      // Apart from the other queues: one event that is not valid keeps it in ALARM for up to 14 days.
      id: "events-dead-letters",
      severity: "page",
      meaning:
        "Deployment events were not turned into deliveries: their webhooks are not called until the events are redriven.",
      metric: deadLettersOf("events"),
      when: { atLeast: 1 },
    },
    {
      // Failing receivers do not cause dead letters: their deliveries are retried (functions/deliveries/sending).
      id: "deliveries-dead-letters",
      severity: "page",
      meaning:
        "Deliveries kept failing for ten hours because of a fault in this service: their webhooks are not called until the messages are redriven.",
      metric: math("deliveries + slowDeliveries", MINUTE, {
        deliveries: deadLettersOf("deliveries"),
        slowDeliveries: deadLettersOf("slowDeliveries"),
      }),
      when: { atLeast: 1 },
    },
    {
      id: "events-waiting",
      severity: "page",
      meaning: "Deployment events have been waiting for ten minutes or more: webhooks are called late.",
      metric: queues.events.queue.metricApproximateAgeOfOldestMessage({ period: MINUTE, statistic: MAXIMUM }),
      when: { atLeast: oldestHealthySeconds("events") + 60 },
      periods: 3,
    },
    {
      id: "deliveries-waiting",
      severity: "page",
      meaning:
        "Deliveries that are due have not been sent, also of projects with few of them: webhooks are called late.",
      metric: quietDeliveriesAge(queues),
      when: { atLeast: oldestHealthySeconds("deliveries") + 60 },
      periods: 3,
    },
    {
      id: "messages-failing",
      severity: "page",
      meaning:
        "Messages have been failing for ten minutes because of a fault in this service: webhooks are not called.",
      // The age of SQS leaves out messages that were received three times, and dead letters appear hours later. A
      // single message fails every six minutes at most, so ten minutes always include a failure.
      metric: ownMetric(stage, "failedMessageAge", { statistic: MAXIMUM, period: TEN_MINUTES }),
      when: { atLeast: 600 },
    },
    {
      id: "queues-stuck",
      severity: "page",
      meaning: "A queue has messages, but none is completed: webhooks are not called at all.",
      metric: stuckQueues(queues),
      when: { atLeast: 1 },
      periods: 5,
    },
    {
      // One failing receiver cannot lower the rate for long: after 30 seconds its circuit opens, and it gets one delivery at
      // a time.
      id: "first-attempts-failing",
      severity: "page",
      meaning: "Three in ten first attempts fail, to many receivers at once: the cause is probably on our side.",
      metric: math("IF(attempts >= 50, 100 * (1 - success), 0)", FIVE_MINUTES, {
        attempts: ownMetric(stage, "firstAttemptSuccess", { statistic: SAMPLE_COUNT }),
        success: ownMetric(stage, "firstAttemptSuccess", { statistic: AVERAGE }),
      }),
      when: { atLeast: 30 },
      periods: 3,
    },
    {
      id: "first-attempts-late",
      severity: "page",
      meaning: `One webhook in seven is called more than ${OBJECTIVE.lateSeconds} seconds after its event: the month's error budget lasts two days.`,
      // A minimum count, because at night a single fault in this service would otherwise page.
      metric: math("IF(attempts >= 40, 100 - inTime, 0)", HOUR, {
        attempts: ownMetric(stage, "eventToFirstAttempt", { statistic: SAMPLE_COUNT }),
        inTime: ownMetric(stage, "eventToFirstAttempt", { statistic: `PR(:${OBJECTIVE.lateSeconds * 1_000})` }),
      }),
      when: { atLeast: FAST_BURN * (100 - OBJECTIVE.percent) },
    },
    {
      id: "sweep-not-running",
      severity: "page",
      meaning:
        "Retries that are due after more than 15 minutes are not sent, and neither are deliveries whose message was lost.",
      // Counts completed runs, not started ones: only a run that reads every shard writes its lag.
      metric: ownMetric(stage, "sweepLag", { statistic: SAMPLE_COUNT, period: MINUTE }),
      when: { below: 1 },
      periods: 5,
      isMissingDataBad: true,
    },
    {
      id: "notifications-late",
      severity: "ticket",
      meaning:
        "Owners are notified more than fifteen minutes late, or not at all: of failing webhooks, and of keys that end.",
      // Only a run that reads every shard writes its lag, so missing data means that no run succeeded.
      metric: ownMetric(stage, "notificationLag", { statistic: MAXIMUM, period: FIVE_MINUTES }),
      when: { atLeast: 900 },
      periods: 3,
      isMissingDataBad: true,
    },
    {
      id: "api-errors",
      severity: "page",
      // A request whose credential cannot be checked gets one too.
      meaning: "One request in twenty gets a 5xx response.",
      metric: math("IF(all - invented >= 5, 100 * (all - invented) / requests, 0)", FIVE_MINUTES, {
        ...serverErrorsOf,
        requests: api.deploymentStage.metricCount({ statistic: SAMPLE_COUNT }),
      }),
      when: { atLeast: 5 },
    },
    {
      id: "endpoint-errors",
      severity: "ticket",
      meaning:
        "A few requests get a 5xx response, perhaps all of one endpoint: it fails, times out, or cannot be called.",
      metric: math("all - invented", FIVE_MINUTES, serverErrorsOf),
      when: { atLeast: 3 },
    },
    {
      id: "rejected-credentials",
      severity: "ticket",
      meaning:
        "Thousands of credentials are rejected: a client keeps using an invalid one, or an attacker guesses credentials.",
      metric: ownMetric(stage, "rejectedCredentials", { statistic: SUM, period: FIVE_MINUTES }),
      when: { atLeast: 1_000 },
      periods: 2,
    },
    {
      // A ticket: if all calls crash, queues-stuck or sweep-not-running pages, and if many do, first-attempts-late.
      id: "delivery-errors",
      severity: "ticket",
      meaning:
        "The fan-out, a sender or a scheduled function crashes: deliveries are minutes late and may arrive twice.",
      metric: sum(errorsOf(({ trigger }) => trigger.kind === "queue" || trigger.kind === "everyMinutes")),
      when: { atLeast: 5 },
      periods: 2,
    },
    {
      id: "invoked-function-errors",
      severity: "ticket",
      meaning: "A function that the platform or an operator invokes fails: its caller gets an error.",
      // Without the imports, whose errors the operator's command shows: an alarm reads at most ten metrics.
      metric: sum(errorsOf(({ id, trigger }) => trigger.kind === "invoke" && !id.endsWith("-import"))),
      when: { atLeast: 3 },
    },
    {
      id: "concurrency-high",
      severity: "ticket",
      meaning: "The account uses 80 % of its Lambda concurrency: at 100 % requests fail and deliveries wait.",
      metric: math("100 * claimed / SERVICE_QUOTA(running)", FIVE_MINUTES, {
        claimed: claimedConcurrency(),
        // The usage metric of the quota L-B99A9384: SERVICE_QUOTA has a value for this one of Lambda's metrics only.
        running: lambda.Function.metricAllConcurrentExecutions({ statistic: MAXIMUM }),
      }),
      when: { atLeast: 80 },
    },
  ];
}

/** https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-delay-queues.html */
const MAX_DELAY_SECONDS = { events: 0, deliveries: 900 };

/**
 * Returns the highest age of the oldest message, in seconds, at which a queue can still be healthy: its longest delay
 * and three receives of a message that fails. After three receives the metric ignores a message, so that a single bad
 * one never exceeds this age. AWS does not document whether the age includes the delay; this assumes that it does.
 * https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-available-cloudwatch-metrics.html
 */
function oldestHealthySeconds(key: keyof typeof MAX_DELAY_SECONDS): number {
  const { visibilitySeconds }: QueueRow = queueRows[key];
  return MAX_DELAY_SECONDS[key] + 3 * visibilitySeconds;
}

/**
 * Returns how many queues have messages and delete none. The errors of the consumer cannot show this: if it reports
 * every message as a batch item failure, Lambda counts no error.
 *
 * A count may have no data while it is 0, and a comparison with no data is not documented. Therefore 0 times the number
 * of visible messages is added, which every active queue reports, and the queues are added instead of compared: a queue
 * without any data counts as 0 and does not hide the others.
 */
function stuckQueues(queues: Queues): cloudwatch.MathExpression {
  const used: Record<string, cloudwatch.IMetric> = {};
  const stuck = Object.entries(queues).map(([key, { queue }]) => {
    used[`${key}Visible`] = queue.metricApproximateNumberOfMessagesVisible({ statistic: MAXIMUM });
    used[`${key}Received`] = queue.metricNumberOfMessagesReceived({ statistic: SUM });
    used[`${key}Done`] = queue.metricNumberOfMessagesDeleted({ statistic: SUM });
    return `IF((${key}Visible + ${key}Received) > 0 AND (${key}Done + 0 * ${key}Visible) < 1, 1, 0)`;
  });
  return math(stuck.join(" + "), MINUTE, used);
}

/** What the service promises of its first attempts, over 30 days (docs/scale.md). */
const OBJECTIVE = { percent: 99, lateSeconds: 10 };

/**
 * Consumption of the error budget, as a multiple of the pace that uses it up in exactly 30 days: at this one an hour
 * costs a fiftieth of it, and all of it is gone in two days.
 * https://sre.google/workbook/alerting-on-slos/
 */
const FAST_BURN = 14.4;
