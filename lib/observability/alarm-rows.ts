import type * as cloudwatch from "aws-cdk-lib/aws-cloudwatch";
import * as lambda from "aws-cdk-lib/aws-lambda";
import { type QueueKey, type QueueRow, queues as queueRows } from "../../functions/manifest/queues.ts";
import { workers } from "../../functions/manifest/workers.ts";
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
  throttleEvents,
} from "./metrics.ts";
import { functionFor, type MonitoredResources } from "./monitored-resources.ts";

/**
 * Returns the alarms of a stage. An alarm is one row here, one section in docs/runbook.md and one row in
 * test/lib/observability/alarms.test.ts.
 *
 * CloudWatch charges by the number of metrics that alarms read. Prefer one more term in an expression to one more
 * alarm, and a ratio with a minimum count to a bare count.
 */
export function alarmRows(monitored: MonitoredResources): AlarmRow[] {
  return [
    ...queueAlarms(monitored),
    ...deliveryAlarms(monitored),
    ...sweepAlarms(monitored),
    ...notificationAlarms(monitored),
    ...apiAlarms(monitored),
    ...functionErrorAlarms(monitored),
    ...capacityAlarms(monitored),
  ];
}

function queueAlarms({ stage, queues }: MonitoredResources): AlarmRow[] {
  const pairs = Object.entries(queues) as [QueueKey, Queues[QueueKey]][];
  return [
    ...pairs.map(([key, { deadLetters }]): AlarmRow => {
      return {
        id: `${alarmIds[key]}-dead-letters`,
        severity: "page",
        meaning: deadLettersMeaning[key],
        metric: deadLetters.metricApproximateNumberOfMessagesVisible({ period: MINUTE, statistic: MAXIMUM }),
        when: { atLeast: 1 },
      };
    }),
    ...pairs.map(([key, { queue }]): AlarmRow => {
      return {
        id: waitingIds[key],
        // Slow receivers alone can fill the slow queue, and a single project the normal one. If a sender is at fault,
        // other alarms page.
        severity: key === "events" ? "page" : "ticket",
        meaning: waitingMeaning[key],
        metric: queue.metricApproximateAgeOfOldestMessage({ period: MINUTE, statistic: MAXIMUM }),
        when: { atLeast: oldestHealthySeconds(key) + 60 },
        periods: 3,
      };
    }),
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
      metric: stuckQueues(pairs),
      when: { atLeast: 1 },
      periods: 5,
    },
  ];
}

/** Beginnings of the ids of the alarms on dead letters. */
const alarmIds = {
  events: "events",
  deliveries: "deliveries",
  slowDeliveries: "slow-deliveries",
} as const satisfies Record<QueueKey, string>;

const waitingIds = {
  events: "events-waiting",
  deliveries: "noisy-deliveries-waiting",
  slowDeliveries: "slow-deliveries-waiting",
} as const satisfies Record<QueueKey, string>;

/** Failing receivers do not cause dead letters: their deliveries are retried (functions/attempts). */
const deadLettersMeaning: Record<QueueKey, string> = {
  events:
    "Deployment events were not turned into deliveries: their webhooks are not called until the events are redriven.",
  deliveries:
    "Deliveries kept failing for ten hours because of a fault in this service: their webhooks are not called until the messages are redriven.",
  slowDeliveries:
    "Deliveries to slow or failing webhooks kept failing for ten hours because of a fault in this service.",
};

const waitingMeaning: Record<QueueKey, string> = {
  events: "Deployment events have been waiting for ten minutes or more: webhooks are called late.",
  deliveries: "Deliveries that are due have not been sent, perhaps of one project only: its webhooks are called late.",
  slowDeliveries: "Deliveries to slow, busy or failing webhooks, and recoveries, have not been sent: they are late.",
};

/** https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-delay-queues.html */
const MAX_DELAY_SECONDS: Record<QueueKey, number> = { events: 0, deliveries: 900, slowDeliveries: 900 };

/**
 * Returns the highest age of the oldest message, in seconds, at which a queue can still be healthy: its longest delay
 * and three receives of a message that fails. After three receives the metric ignores a message, so that a single bad
 * one never exceeds this age. AWS does not document whether the age includes the delay; this assumes that it does.
 * https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-available-cloudwatch-metrics.html
 */
function oldestHealthySeconds(key: QueueKey): number {
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
function stuckQueues(pairs: [QueueKey, Queues[QueueKey]][]): cloudwatch.MathExpression {
  const used: Record<string, cloudwatch.IMetric> = {};
  const stuck = pairs.map(([key, { queue }]) => {
    used[`${key}Visible`] = queue.metricApproximateNumberOfMessagesVisible({ statistic: MAXIMUM });
    used[`${key}Received`] = queue.metricNumberOfMessagesReceived({ statistic: SUM });
    used[`${key}Done`] = queue.metricNumberOfMessagesDeleted({ statistic: SUM });
    return `IF((${key}Visible + ${key}Received) > 0 AND (${key}Done + 0 * ${key}Visible) < 1, 1, 0)`;
  });
  return math(stuck.join(" + "), MINUTE, used);
}

/** What the service promises of its first attempts, over 30 days (docs/scale.md). */
const OBJECTIVE = { percent: 99, lateSeconds: 10 };

const lateMs = OBJECTIVE.lateSeconds * 1_000;

/**
 * Consumption of the error budget, as a multiple of the pace that uses it up in exactly 30 days: at this one an hour
 * costs a fiftieth of it, and all of it is gone in two days.
 * https://sre.google/workbook/alerting-on-slos/
 */
const FAST_BURN = 14.4;

/**
 * These alarms use no anomaly detection, which costs three metrics per alarm, needs two weeks of data, and learns a
 * slow decline as normal. One failing receiver cannot lower the success rate for long: after 30 seconds its circuit
 * opens, and it gets one delivery at a time.
 */
function deliveryAlarms({ stage }: MonitoredResources): AlarmRow[] {
  return [
    {
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
        inTime: ownMetric(stage, "eventToFirstAttempt", { statistic: `PR(:${lateMs})` }),
      }),
      when: { atLeast: FAST_BURN * (100 - OBJECTIVE.percent) },
    },
    {
      id: "first-attempts-slow",
      severity: "ticket",
      meaning: `One webhook in a hundred is called more than ${OBJECTIVE.lateSeconds} seconds after its event.`,
      metric: math("IF(attempts >= 100, lateness, 0)", FIVE_MINUTES, {
        attempts: ownMetric(stage, "eventToFirstAttempt", { statistic: SAMPLE_COUNT }),
        lateness: ownMetric(stage, "eventToFirstAttempt", { statistic: "p99" }),
      }),
      when: { atLeast: lateMs },
      periods: 3,
    },
  ];
}

function sweepAlarms({ stage }: MonitoredResources): AlarmRow[] {
  return [
    {
      id: "sweep-late",
      severity: "page",
      meaning: "Retries go out more than five minutes late, and so do deliveries whose message was lost.",
      metric: ownMetric(stage, "sweepLag", { statistic: MAXIMUM, period: MINUTE }),
      when: { atLeast: 300 },
      periods: 3,
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
  ];
}

function notificationAlarms({ stage }: MonitoredResources): AlarmRow[] {
  return [
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
  ];
}

function apiAlarms({ stage, api, functions }: MonitoredResources): AlarmRow[] {
  const { deploymentStage } = api;
  const authorizer = functionFor(functions, "auth/authorizer");
  return [
    {
      id: "api-errors",
      severity: "page",
      meaning: "One request in twenty gets a 5xx response.",
      metric: math("IF(errors >= 5, 100 * errors / requests, 0)", FIVE_MINUTES, {
        errors: serverErrors(stage),
        requests: deploymentStage.metricCount({ statistic: SAMPLE_COUNT }),
      }),
      when: { atLeast: 5 },
    },
    {
      id: "endpoint-errors",
      severity: "ticket",
      meaning:
        "A few requests get a 5xx response, perhaps all of one endpoint: it fails, times out, or cannot be called.",
      metric: serverErrors(stage),
      when: { atLeast: 3 },
    },
    {
      id: "api-slow",
      severity: "ticket",
      meaning: "One request in a hundred takes three seconds or more.",
      metric: math("IF(requests >= 100, latency, 0)", FIVE_MINUTES, {
        requests: deploymentStage.metricCount({ statistic: SAMPLE_COUNT }),
        latency: deploymentStage.metricLatency({ statistic: "p99" }),
      }),
      when: { atLeast: 3_000 },
      periods: 3,
    },
    {
      id: "authorizer-errors",
      severity: "page",
      meaning: "Credentials cannot be checked: requests get a 503 response, valid credentials included.",
      metric: math("IF(errors >= 5, 100 * errors / calls, 0)", FIVE_MINUTES, {
        errors: authorizer.metricErrors({ statistic: SUM }),
        calls: authorizer.metricInvocations({ statistic: SUM }),
      }),
      when: { atLeast: 5 },
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
  ];
}

/**
 * Lambda counts crashes, timeouts and exhausted memory as Errors, but not the failures that a function handles. Those of
 * endpoints get a 5xx response, which the access log counts.
 */
function functionErrorAlarms({ functions }: MonitoredResources): AlarmRow[] {
  const errorsOf = (files: string[]) =>
    files.map((file) => functionFor(functions, file).metricErrors({ statistic: SUM }));
  const pipeline = workers.filter(({ trigger }) => trigger.kind === "queue" || trigger.kind === "everyMinutes");
  const invoked = workers.filter(({ trigger }) => trigger.kind === "invoke");
  return [
    {
      id: "delivery-errors",
      severity: "page",
      meaning:
        "The fan-out, a sender or a scheduled function crashes: deliveries are minutes late and may arrive twice.",
      metric: sum(errorsOf(pipeline.map(({ file }) => file))),
      when: { atLeast: 5 },
      periods: 2,
    },
    {
      id: "invoked-function-errors",
      severity: "ticket",
      meaning: "A function that the platform or an operator invokes fails: its caller gets an error.",
      // Without the imports, whose errors the operator's command shows: an alarm reads at most ten metrics.
      metric: sum(errorsOf(invoked.flatMap(({ file }) => (file.endsWith("/import") ? [] : file)))),
      when: { atLeast: 3 },
    },
  ];
}

/** Maximum number of metrics in the expression of one alarm (CloudWatch quota). */
const MAX_METRICS = 10;

/** Divides items into groups of about equal size, each small enough for one alarm with one metric per item. */
function inGroups<Item>(items: Item[], maxItems = MAX_METRICS): Item[][] {
  const count = Math.ceil(items.length / maxItems);
  const size = Math.ceil(items.length / count);
  return Array.from({ length: count }, (_, index) => items.slice(index * size, (index + 1) * size));
}

function capacityAlarms({ functions, tables }: MonitoredResources): AlarmRow[] {
  // Endpoints and the functions that the platform invokes are left out, because an alarm reads at most ten metrics. When
  // the account's concurrency is used up, the fan-out and the sweep are throttled too. `recover` has a reservation of its
  // own where the stage keeps data: it is there to be reached, and its throttled calls count for api-errors.
  const throttles = workers
    .filter(({ trigger }) => trigger.kind !== "invoke")
    .map(({ file }) => functionFor(functions, file).metricThrottles({ statistic: SUM }));
  return [
    {
      id: "function-throttles",
      severity: "page",
      meaning: "Lambda throttles the functions: requests fail and deliveries wait.",
      metric: sum(throttles),
      when: { atLeast: 10 },
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
    ...(["Read", "Write"] as const).flatMap((kind) => {
      // The heartbeat is a metric too.
      return inGroups(throttleEvents(tables, kind), MAX_METRICS - 1).map((metrics, index): AlarmRow => {
        return {
          id: `table-${kind === "Read" ? "read" : "write"}-throttles-${index + 1}`,
          section: "table-throttles",
          severity: "ticket",
          meaning: `DynamoDB throttles ${kind.toLowerCase()}s: requests and deliveries are slower, and some fail.`,
          metric: sum(metrics, functionFor(functions, "deliveries/sweep")),
          when: { atLeast: 100 },
          periods: 2,
        };
      });
    }),
  ];
}
