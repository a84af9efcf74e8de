import { Duration, Stack } from "aws-cdk-lib";
import * as cloudwatch from "aws-cdk-lib/aws-cloudwatch";
import type * as lambda from "aws-cdk-lib/aws-lambda";
import type { Construct } from "constructs";
import { endpoints } from "../../functions/manifest/endpoints.ts";
import { METRICS_NAMESPACE, type MetricKey, metrics } from "../../functions/manifest/metrics.ts";
import { tables as tableRows } from "../../functions/manifest/tables.ts";
import { workers } from "../../functions/manifest/workers.ts";
import { deployedName } from "../names.ts";
import {
  type Alarms,
  claimedConcurrency,
  type MonitoredResources,
  math,
  named,
  ownMetric,
  throttleEvents,
} from "./alarms.ts";

/**
 * One page that answers "is it us or them?": ours above, theirs below it, then the front door and what may run out. It reads
 * the metrics that the alarms read, and shows them before they are alarming.
 */
export function createDashboard(scope: Construct, watched: MonitoredResources, alarms: Alarms): cloudwatch.Dashboard {
  return new cloudwatch.Dashboard(scope, "Dashboard", {
    dashboardName: deployedName(watched.stage, "deployment-webhooks"),
    defaultInterval: Duration.hours(3),
    widgets: [
      [new cloudwatch.TextWidget({ markdown: guide(watched), width: WIDTH, height: 5 })],
      [new cloudwatch.AlarmStatusWidget({ title: "Alarms", alarms: alarms.all, width: WIDTH, height: 4 })],
      [heading("Ours: from the event to the first byte sent")],
      ...ours(watched),
      [heading("Theirs: what receivers answer")],
      ...theirs(watched),
      [heading("Front door: the API")],
      ...frontDoor(watched),
      [heading("Capacity: what may run out")],
      ...capacity(watched),
    ],
  });
}

/** Where the dashboard is in the console. */
export function dashboardUrl(dashboard: cloudwatch.Dashboard): string {
  const { region } = Stack.of(dashboard);
  return `https://${region}.console.aws.amazon.com/cloudwatch/home?region=${region}#dashboards/dashboard/${dashboard.dashboardName}`;
}

const guide = ({ stage }: MonitoredResources): string => `# Deployment webhooks, ${stage.name}: is it us or them?
**Us** when *event to first attempt* climbs, a queue grows old, a function has errors, the sweep lags, or there is a dead letter: receivers cannot cause any of these.
**Them** when all of that is calm and *attempts by outcome* shows failures. One webhook or two in the table of failing ones: their receiver. Many at once, with \`dns_error\` or \`timeout\`: look at our way out before you believe it.
**The front door** is apart from both: its 4xx are callers', its 5xx ours.
Each alarm names its section of \`docs/runbook.md\`.`;

function ours({ stage, functions, queues }: MonitoredResources): cloudwatch.IWidget[][] {
  const { events, deliveries } = queues;
  const pairs = Object.entries(queues);
  const consumers = ["deliveries/fan-out", "attempts/send"].map((file) => named(functions, file));
  const lateness = (statistic: string) => own(stage, "eventToFirstAttempt", statistic, statistic);
  return [
    [
      graph("Event to first attempt", [lateness("p50"), lateness("p99")], { unit: "ms" }),
      graph(
        "Oldest message",
        pairs.map(([key, { queue }]) => queue.metricApproximateAgeOfOldestMessage({ label: key, period: MINUTE })),
        { unit: "s" },
      ),
      graph("Messages", [
        events.queue.metricApproximateNumberOfMessagesVisible({ label: "events waiting", period: MINUTE }),
        deliveries.queue.metricApproximateNumberOfMessagesVisible({ label: "deliveries waiting", period: MINUTE }),
        deliveries.queue.metricApproximateNumberOfMessagesNotVisible({ label: "deliveries in work", period: MINUTE }),
        deliveries.queue.metricApproximateNumberOfMessagesDelayed({ label: "retries delayed", period: MINUTE }),
      ]),
    ],
    [
      graph("Errors of functions: crashes, timeouts", errorsOf(functions)),
      graph(
        "Throttles of functions",
        workers.map(({ file }) => named(functions, file).metricThrottles({ label: file, period: MINUTE })),
      ),
      graph("Sweep", [own(stage, "sweepLag", "Maximum", "lag, s")], {
        unit: "s",
        right: [own(stage, "redriven", "Sum", "rows handed over")],
      }),
    ],
    [
      graph("Dead letters", [
        ...pairs.map(([key, { deadLetters }]) =>
          deadLetters.metricApproximateNumberOfMessagesVisible({ label: key, period: MINUTE }),
        ),
        own(stage, "rejectedEvents", "Sum", "events that were none"),
        own(stage, "messagesFailed", "Sum", "messages that failed"),
      ]),
      table("Our own failures, which bring a message back", consumers, [
        'filter message = "message failed"',
        "stats count(*) as failures, latest(delivery_id) as last_delivery by error.name, error.message",
        "sort failures desc",
        "limit 10",
      ]),
    ],
  ];
}

function theirs({ stage, functions }: MonitoredResources): cloudwatch.IWidget[][] {
  const send = named(functions, "attempts/send");
  const latency = (statistic: string) => own(stage, "deliveryLatency", statistic, statistic);
  const success = own(stage, "firstAttemptSuccess", "Average", "");
  return [
    [
      graph("Attempts by outcome", [byDimension(stage, "attempts")], { stacked: true }),
      graph("First attempts that succeed", [math("100 * success", MINUTE, { success }, "share")], {
        unit: "%",
        max: 100,
      }),
      graph("Event to success, retries included", [latency("p50"), latency("p99")], { unit: "ms" }),
    ],
    [
      table(
        "Failing webhooks",
        [send],
        [
          'filter message = "attempt" and outcome != "succeeded"',
          "stats count(*) as failures, count_distinct(delivery_id) as deliveries, latest(outcome) as last_outcome, latest(delivery_id) as last_delivery by webhook_id, project_id",
          "sort failures desc",
          "limit 10",
        ],
      ),
      graph("What follows from failures", [
        own(stage, "retries", "Sum", "attempts again"),
        own(stage, "exhausted", "Sum", "deliveries given up"),
      ]),
    ],
    [
      table(
        "Busiest projects",
        [send],
        [
          'filter message = "attempt"',
          "stats count(*) as attempts, sum(duration_ms) / 1000 as seconds, count_distinct(webhook_id) as webhooks by project_id",
          "sort seconds desc",
          "limit 10",
        ],
      ),
      graph("Receivers we leave alone", [
        own(stage, "webhooksDisabled", "Sum", "webhooks disabled"),
        own(stage, "blockedAddresses", "Sum", "addresses that are not public"),
      ]),
    ],
  ];
}

function frontDoor({ stage, api }: MonitoredResources): cloudwatch.IWidget[][] {
  const { deploymentStage: door } = api;
  return [
    [
      graph("Requests", [
        door.metricCount({ label: "all", statistic: "SampleCount", period: MINUTE }),
        door.metricClientError({ label: "4xx", statistic: "Sum", period: MINUTE }),
        door.metricServerError({ label: "5xx", statistic: "Sum", period: MINUTE, color: cloudwatch.Color.RED }),
      ]),
      graph(
        "Latency",
        ["p50", "p99"].map((statistic) => door.metricLatency({ label: statistic, statistic, period: MINUTE })),
        { unit: "ms" },
      ),
      graph("Credentials refused, by reason", [byDimension(stage, "rejectedCredentials")], { stacked: true }),
    ],
  ];
}

function capacity({ functions, tables }: MonitoredResources): cloudwatch.IWidget[][] {
  const perTable = Object.keys(tableRows) as (keyof typeof tableRows)[];
  const totalThrottles = (kind: "Read" | "Write") => {
    const name = kind.toLowerCase();
    const used = Object.fromEntries(throttleEvents(tables, kind).map((metric, index) => [`${name}${index}`, metric]));
    return math(Object.keys(used).join(" + "), MINUTE, used, `${name}s refused`);
  };
  return [
    [
      graph(
        "Read units",
        perTable.map((key) => tables[key].metricConsumedReadCapacityUnits({ label: key, period: MINUTE })),
        { stacked: true },
      ),
      graph(
        "Write units",
        perTable.map((key) => tables[key].metricConsumedWriteCapacityUnits({ label: key, period: MINUTE })),
        { stacked: true },
      ),
      graph("DynamoDB throttles", [totalThrottles("Read"), totalThrottles("Write")]),
    ],
    [
      graph("Functions running at once", [
        claimedConcurrency().with({ label: "whole account", period: MINUTE }),
        ...(["auth/authorizer", "attempts/send"] as const).map((file) =>
          named(functions, file).metric("ConcurrentExecutions", { label: file, statistic: "Maximum", period: MINUTE }),
        ),
      ]),
    ],
  ];
}

/** A line for each worker that others wait for, and one for all endpoints together. */
function errorsOf(functions: MonitoredResources["functions"]): cloudwatch.IMetric[] {
  const perWorker = workers.map(({ file }) => named(functions, file).metricErrors({ label: file, period: MINUTE }));
  const used = Object.fromEntries(
    endpoints.map(({ file }, index) => [`e${index}`, named(functions, file).metricErrors()]),
  );
  return [...perWorker, math(Object.keys(used).join(" + "), MINUTE, used, "endpoints")];
}

const own = (stage: MonitoredResources["stage"], key: MetricKey, statistic: string, label: string): cloudwatch.Metric =>
  ownMetric(stage, key, { statistic, period: MINUTE }).with({ label });

/** A line per value of a metric's own dimension, whichever values there are. An alarm could not read this, a graph can. */
function byDimension(
  stage: MonitoredResources["stage"],
  key: "attempts" | "rejectedCredentials",
): cloudwatch.SearchExpression {
  const { name, dimension } = metrics[key];
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

/** CloudWatch divides a dashboard into so many columns. */
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

/** A query of the functions' logs, run when somebody looks: each look costs what it reads. */
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

const MINUTE = Duration.minutes(1);
