import { Duration, Stack } from "aws-cdk-lib";
import * as cloudwatch from "aws-cdk-lib/aws-cloudwatch";
import type * as lambda from "aws-cdk-lib/aws-lambda";
import type { Construct } from "constructs";
import { routeRows } from "../../functions/foundation/manifest/function-rows.ts";
import { METRICS_NAMESPACE, type MetricKey, metrics } from "../../functions/foundation/manifest/metrics.ts";
import type { QueueKey } from "../../functions/foundation/manifest/queues.ts";
import { workerRows } from "../../functions/foundation/manifest/workers.ts";
import { globalName } from "../names.ts";
import {
  claimedConcurrency,
  MINUTE,
  math,
  ownMetric,
  quietDeliveriesAge,
  serverErrors,
  sum,
  throttleEvents,
} from "./metrics.ts";
import { functionFor, type MonitoredResources } from "./monitored-resources.ts";

/**
 * Creates the dashboard of a stage. It separates faults of this service from faults of the receivers: first our side,
 * then the receivers, the API and the capacity. It shows the metrics that the alarms read, before they reach a
 * threshold.
 */
export function createDashboard(
  scope: Construct,
  monitored: MonitoredResources,
  alarms: cloudwatch.Alarm[] = [],
): cloudwatch.Dashboard {
  return new cloudwatch.Dashboard(scope, "Dashboard", {
    dashboardName: globalName(Stack.of(scope)),
    defaultInterval: Duration.hours(3),
    widgets: [
      [new cloudwatch.TextWidget({ markdown: guide(monitored), width: WIDTH, height: 5 })],
      // A widget without alarms is not valid.
      alarms.length > 0 ? [new cloudwatch.AlarmStatusWidget({ title: "Alarms", alarms, width: WIDTH, height: 4 })] : [],
      [heading("Us: from the event to the first attempt")],
      ...ourSide(monitored),
      [heading("Them: responses of the receivers")],
      ...receivers(monitored),
      [heading("API: requests, latency and rejected credentials")],
      ...apiRequests(monitored),
      [heading("Capacity: tables and Lambda concurrency")],
      ...capacity(monitored),
    ],
  });
}

/** Returns the address of the dashboard in the AWS console. */
export function dashboardUrl(dashboard: cloudwatch.Dashboard): string {
  const { region } = Stack.of(dashboard);
  return `https://${region}.console.aws.amazon.com/cloudwatch/home?region=${region}#dashboards/dashboard/${dashboard.dashboardName}`;
}

const guide = ({ stage }: MonitoredResources): string => `# Deployment webhooks, ${stage.name}: is it us or them?
**Us** if *event to first attempt* rises, the oldest message gets older, a function has errors, the sweep lags, or there are dead letters. Receivers cannot cause any of these, except that slow ones make the messages of \`slowDeliveries\` older.
**Them** if all of that is normal and *attempts by outcome* shows failures. If only one or two webhooks are in the table of failing webhooks, their receivers are at fault. If many webhooks fail at once with \`dns_error\` or \`timeout\`, check our outgoing network first.
**The API** is independent of both: 4xx responses are caused by callers, 5xx responses by us.
Every alarm names its section of \`docs/runbook.md\`.`;

const consumersOf = (...queues: QueueKey[]): string[] =>
  workerRows.flatMap(({ id, trigger }) => (trigger.kind === "queue" && queues.includes(trigger.queue) ? [id] : []));
const SENDERS = consumersOf("deliveries", "slowDeliveries");

function ourSide({ stage, functions, queues }: MonitoredResources): cloudwatch.IWidget[][] {
  const { events, deliveries, slowDeliveries } = queues;
  const pairs = Object.entries(queues);
  const consumers = [...consumersOf("events"), ...SENDERS].map((id) => functionFor(functions, id));
  const lateness = (statistic: string) => perMinute(stage, "eventToFirstAttempt", statistic, statistic);
  return [
    [
      graph("Event to first attempt", [lateness("p50"), lateness("p99")], { unit: "ms" }),
      graph(
        "Oldest message",
        [
          ...pairs.map(([key, { queue }]) => queue.metricApproximateAgeOfOldestMessage({ label: key, period: MINUTE })),
          quietDeliveriesAge(queues).with({ label: "deliveries, quiet projects" }),
          perMinute(stage, "failedMessageAge", "Maximum", "failing messages"),
        ],
        { unit: "s" },
      ),
      graph("Messages", [
        events.queue.metricApproximateNumberOfMessagesVisible({ label: "events waiting", period: MINUTE }),
        deliveries.queue.metricApproximateNumberOfMessagesVisible({ label: "deliveries waiting", period: MINUTE }),
        deliveries.queue.metricApproximateNumberOfMessagesNotVisible({ label: "deliveries in flight", period: MINUTE }),
        deliveries.queue.metricApproximateNumberOfMessagesDelayed({ label: "delayed retries", period: MINUTE }),
        slowDeliveries.queue.metricApproximateNumberOfMessagesVisible({ label: "slow waiting", period: MINUTE }),
        slowDeliveries.queue.metricApproximateNumberOfMessagesNotVisible({ label: "slow in flight", period: MINUTE }),
        slowDeliveries.queue.metricApproximateNumberOfMessagesDelayed({ label: "slow delayed", period: MINUTE }),
      ]),
    ],
    [
      graph("Function errors (crashes, timeouts)", errorsOf(functions)),
      graph(
        "Function throttles",
        workerRows.map(({ id }) => functionFor(functions, id).metricThrottles({ label: id, period: MINUTE })),
      ),
      graph(
        "Sweep and notifications",
        [
          perMinute(stage, "sweepLag", "Maximum", "sweep lag"),
          perMinute(stage, "notificationLag", "Maximum", "notification lag"),
        ],
        { unit: "s", right: [perMinute(stage, "redriven", "Sum", "deliveries enqueued")] },
      ),
    ],
    [
      graph("Dead letters", [
        ...pairs.map(([key, { deadLetters }]) =>
          deadLetters.metricApproximateNumberOfMessagesVisible({ label: key, period: MINUTE }),
        ),
        perMinute(stage, "rejectedEvents", "Sum", "rejected events"),
        perMinute(stage, "messagesFailed", "Sum", "failed messages"),
      ]),
      table("Failed messages (internal errors, received again)", consumers, [
        'filter message = "message failed"',
        "stats count(*) as failures, latest(delivery_id) as last_delivery by error.name, error.message",
        "sort failures desc",
        "limit 10",
      ]),
    ],
  ];
}

function receivers({ stage, functions }: MonitoredResources): cloudwatch.IWidget[][] {
  const senders = SENDERS.map((id) => functionFor(functions, id));
  const latency = (statistic: string) => perMinute(stage, "deliveryLatency", statistic, statistic);
  const success = perMinute(stage, "firstAttemptSuccess", "Average", "");
  return [
    [
      graph("Attempts by outcome", [byDimension(stage, "attempts")], { stacked: true }),
      graph("Successful first attempts", [math("100 * success", MINUTE, { success }, "share")], {
        unit: "%",
        max: 100,
      }),
      graph("Event to success (retries included)", [latency("p50"), latency("p99")], { unit: "ms" }),
    ],
    [
      table("Failing webhooks", senders, [
        'filter message = "attempt" and outcome != "succeeded"',
        "stats count(*) as failures, count_distinct(delivery_id) as deliveries, latest(outcome) as last_outcome, latest(delivery_id) as last_delivery by webhook_id, project_id",
        "sort failures desc",
        "limit 10",
      ]),
      graph("Retries and failed deliveries", [
        perMinute(stage, "retries", "Sum", "retries"),
        perMinute(stage, "exhausted", "Sum", "failed deliveries"),
      ]),
    ],
    [
      table("Busiest projects", senders, [
        'filter message = "attempt"',
        "stats count(*) as attempts, sum(duration_ms) / 1000 as seconds, count_distinct(webhook_id) as webhooks by project_id",
        "sort seconds desc",
        "limit 10",
      ]),
      graph("Disabled webhooks and blocked addresses", [
        perMinute(stage, "webhooksDisabled", "Sum", "disabled webhooks"),
        perMinute(stage, "blockedAddresses", "Sum", "attempts at non-public addresses"),
      ]),
    ],
  ];
}

function apiRequests({ stage, api }: MonitoredResources): cloudwatch.IWidget[][] {
  const { deploymentStage } = api;
  return [
    [
      graph("Requests", [
        deploymentStage.metricCount({ label: "all", statistic: "SampleCount", period: MINUTE }),
        deploymentStage.metricClientError({
          label: "4xx, and errors of API Gateway",
          statistic: "Sum",
          period: MINUTE,
        }),
        serverErrors(stage, MINUTE).with({ label: "5xx", color: cloudwatch.Color.RED }),
      ]),
      graph(
        "Latency",
        ["p50", "p99"].map((statistic) =>
          deploymentStage.metricLatency({ label: statistic, statistic, period: MINUTE }),
        ),
        { unit: "ms" },
      ),
      graph("Rejected credentials by reason", [byDimension(stage, "rejectedCredentials")], { stacked: true }),
    ],
  ];
}

function capacity({ functions, tables }: MonitoredResources): cloudwatch.IWidget[][] {
  const perTable = Object.entries(tables);
  const totalThrottles = (kind: "Read" | "Write", name: string) =>
    sum(throttleEvents(tables, kind), { name, period: MINUTE, label: `${name}s throttled` });
  return [
    [
      graph(
        "Read units",
        perTable.map(([label, each]) => each.metricConsumedReadCapacityUnits({ label, period: MINUTE })),
        { stacked: true },
      ),
      graph(
        "Write units",
        perTable.map(([label, each]) => each.metricConsumedWriteCapacityUnits({ label, period: MINUTE })),
        { stacked: true },
      ),
      graph("DynamoDB throttles", [totalThrottles("Read", "read"), totalThrottles("Write", "write")]),
    ],
    [
      graph("Concurrent executions", [
        claimedConcurrency().with({ label: "whole account", period: MINUTE }),
        ...["auth-authorizer", ...SENDERS].map((id) =>
          functionFor(functions, id).metric("ConcurrentExecutions", {
            label: id,
            statistic: "Maximum",
            period: MINUTE,
          }),
        ),
      ]),
    ],
  ];
}

/** Returns one line for each worker and one for all endpoints together. */
function errorsOf(functions: MonitoredResources["functions"]): cloudwatch.IMetric[] {
  const perWorker = workerRows.map(({ id }) => functionFor(functions, id).metricErrors({ label: id, period: MINUTE }));
  const ofEndpoints = routeRows.map(({ id }) => functionFor(functions, id).metricErrors());
  return [...perWorker, sum(ofEndpoints, { name: "e", period: MINUTE, label: "endpoints" })];
}

const perMinute = (
  stage: MonitoredResources["stage"],
  key: MetricKey,
  statistic: string,
  label: string,
): cloudwatch.Metric => ownMetric(stage, key, { statistic, period: MINUTE }).with({ label });

/**
 * Returns one line per value of a metric's first dimension of its own. Graphs can search for values that are not known in advance;
 * alarms cannot.
 */
function byDimension(stage: MonitoredResources["stage"], key: "attempts" | "rejectedCredentials") {
  const { name, dimensions } = metrics[key];
  const [dimension] = dimensions;
  const schema = `{${METRICS_NAMESPACE},stage,${dimension}} MetricName="${name}" stage="${stage.name}"`;
  return new cloudwatch.SearchExpression({
    expression: `SEARCH('${schema}', 'Sum', ${MINUTE.toSeconds()})`,
    period: MINUTE,
    label: `\${PROP('Dim.${dimension}')}`,
  });
}

interface GraphOptions {
  unit?: string;
  stacked?: boolean;
  max?: number;
  right?: cloudwatch.IMetric[];
}

/** Number of columns of a CloudWatch dashboard. */
const WIDTH = 24;

function graph(
  title: string,
  left: cloudwatch.IMetric[],
  { unit, stacked = false, max, right = [] }: GraphOptions = {},
): cloudwatch.GraphWidget {
  return new cloudwatch.GraphWidget({
    title,
    left,
    right,
    stacked,
    leftYAxis: { min: 0, showUnits: false, ...(unit && { label: unit }), ...(max !== undefined && { max }) },
    ...(right.length > 0 && { rightYAxis: { min: 0, showUnits: false } }),
    width: WIDTH / 3,
    height: 6,
  });
}

/** Returns the results of a query of the functions' logs. It runs, and costs, each time the dashboard is opened. */
function table(title: string, functions: lambda.Function[], queryLines: string[]): cloudwatch.LogQueryWidget {
  return new cloudwatch.LogQueryWidget({
    title,
    logGroupNames: functions.map(({ logGroup }) => logGroup.logGroupName),
    queryLines,
    view: cloudwatch.LogQueryVisualizationType.TABLE,
    width: (WIDTH / 3) * 2,
    height: 6,
  });
}

const heading = (text: string): cloudwatch.TextWidget =>
  new cloudwatch.TextWidget({
    markdown: `## ${text}`,
    width: WIDTH,
    height: 1,
    background: cloudwatch.TextWidgetBackground.TRANSPARENT,
  });
