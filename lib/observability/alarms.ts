import { Duration, Stack } from "aws-cdk-lib";
import type * as apigateway from "aws-cdk-lib/aws-apigateway";
import * as cloudwatch from "aws-cdk-lib/aws-cloudwatch";
import { SnsAction } from "aws-cdk-lib/aws-cloudwatch-actions";
import * as iam from "aws-cdk-lib/aws-iam";
import type * as lambda from "aws-cdk-lib/aws-lambda";
import * as sns from "aws-cdk-lib/aws-sns";
import { EmailSubscription } from "aws-cdk-lib/aws-sns-subscriptions";
import { Construct } from "constructs";
import { endpoints } from "../../functions/manifest/endpoints.ts";
import { METRICS_NAMESPACE, type MetricKey, metrics } from "../../functions/manifest/metrics.ts";
import { type QueueKey, type QueueRow, queues as queueRows } from "../../functions/manifest/queues.ts";
import { type TableRow, tables as tableRows } from "../../functions/manifest/tables.ts";
import { workers } from "../../functions/manifest/workers.ts";
import { constructId } from "../names.ts";
import type { Queues } from "../queues.ts";
import type { ServiceFunction } from "../service-function.ts";
import type { Stage } from "../stage.ts";
import type { Tables } from "../tables.ts";

/** What is to be watched: the parts of one stage. */
export interface MonitoredResources {
  stage: Pick<Stage, "name" | "alarmEmail">;
  api: apigateway.RestApi;
  /** By path below `functions/`: every endpoint and worker. */
  functions: Record<string, Pick<ServiceFunction, "lambda">>;
  queues: Queues;
  tables: Tables;
}

export interface Alarms {
  /** Told of every alarm and of its end. */
  topic: sns.Topic;
  all: cloudwatch.Alarm[];
}

/**
 * - `page`: users notice, or will within the hour: somebody gets up.
 * - `ticket`: it can wait for the morning.
 */
type Severity = "page" | "ticket";

interface AlarmRow {
  /** Names the alarm. */
  id: string;
  /** Section of docs/runbook.md; absent = the id. */
  section?: string;
  severity: Severity;
  /** What it means for users, in one sentence. */
  meaning: string;
  metric: cloudwatch.IMetric;
  /** Rings from this value on, or below that one. */
  when: { atLeast: number } | { below: number };
  /** So many periods in a row; absent = 1. */
  periods?: number;
  /**
   * Silence is the fault. Everything else here counts something that is absent while nothing happens: no data means no
   * trouble, and an alarm that is on goes off.
   */
  ringsWithoutData?: boolean;
}

/**
 * The alarms of a stage. Each has a section in docs/runbook.md. CloudWatch charges by the metrics they read: prefer one more
 * term in an expression to one more alarm, and a ratio with a minimum count to a bare count.
 */
export function createAlarms(scope: Construct, watched: MonitoredResources): Alarms {
  const folder = new Construct(scope, "Alarms");
  const topic = createTopic(folder, watched.stage);
  const action = new SnsAction(topic);
  const all = rowsFor(watched).map((row) => {
    const alarm = createAlarm(folder, `${watched.stage.name}-${row.severity}-${row.id}`, row);
    alarm.addAlarmAction(action);
    alarm.addOkAction(action);
    return alarm;
  });
  return { topic, all };
}

/** A function that is deployed gradually. */
export interface GradualDeployment {
  /** Path below `functions/`. */
  file: string;
  alias: lambda.IAlias;
  stage: Pick<Stage, "name">;
}

/**
 * Alarms that end a gradual deployment of a function and bring the version before it back. The alias counts both versions,
 * so a new one that fails always shows as a tenth. What the functions answer as an error of their own is no Error to Lambda,
 * and a message that fails is none either: the sender counts those itself.
 */
export function rollbackAlarmsFor(scope: Construct, { file, alias, stage }: GradualDeployment): cloudwatch.Alarm[] {
  const errors: AlarmRow = {
    id: "errors",
    severity: "page",
    meaning: `The new version of ${file} fails, and the one before it is brought back.`,
    metric: math("IF(errors >= 3, 100 * errors / calls, 0)", MINUTE, {
      errors: alias.metricErrors({ statistic: SUM }),
      calls: alias.metricInvocations({ statistic: SUM }),
    }),
    when: { atLeast: 1 },
  };
  const failing: AlarmRow = {
    id: "messages-failing",
    severity: "page",
    meaning: `The new version of ${file} fails on messages, and the one before it is brought back.`,
    metric: ownMetric(stage, "messagesFailed", { statistic: SUM, period: MINUTE }),
    when: { atLeast: 3 },
  };
  // How long the sender takes is for receivers to say, how long the authorizer takes is not. Starts are not in it.
  const slow: AlarmRow = {
    id: "slow",
    severity: "page",
    meaning: `The new version of ${file} keeps every request waiting, and the one before it is brought back.`,
    metric: math("IF(calls >= 100, duration, 0)", MINUTE, {
      calls: alias.metricInvocations({ statistic: SUM }),
      duration: alias.metricDuration({ statistic: "p95" }),
    }),
    when: { atLeast: 1_000 },
  };
  // A refusal is an answer. A new version that refuses everybody shows as a tenth of the calls, above those always refused.
  const refusing: AlarmRow = {
    id: "refusing",
    severity: "page",
    meaning: `The new version of ${file} refuses good credentials, and the one before it is brought back.`,
    metric: math("IF(refused >= 10 AND calls >= 50, 100 * refused / calls, 0)", MINUTE, {
      refused: ownMetric(stage, "rejectedCredentials", { statistic: SUM, period: MINUTE }),
      calls: alias.metricInvocations({ statistic: SUM }),
    }),
    when: { atLeast: 8 },
  };
  const folder = new Construct(scope, "RollbackAlarms");
  return [errors, ...(file === "auth/authorizer" ? [slow, refusing] : [failing])].map((row) =>
    createAlarm(folder, `${Stack.of(scope).stackName}-rollback-${file.replaceAll("/", "-")}-${row.id}`, {
      ...row,
      section: "rolled-back",
    }),
  );
}

function createAlarm(scope: Construct, alarmName: string, row: AlarmRow): cloudwatch.Alarm {
  const { id, section = id, meaning, metric, when, periods = 1, ringsWithoutData = false } = row;
  const { GREATER_THAN_OR_EQUAL_TO_THRESHOLD, LESS_THAN_THRESHOLD } = cloudwatch.ComparisonOperator;
  return new cloudwatch.Alarm(scope, constructId(id), {
    alarmName,
    alarmDescription: `${meaning} What to do: docs/runbook.md#${section}`,
    metric,
    ...("atLeast" in when
      ? { threshold: when.atLeast, comparisonOperator: GREATER_THAN_OR_EQUAL_TO_THRESHOLD }
      : { threshold: when.below, comparisonOperator: LESS_THAN_THRESHOLD }),
    evaluationPeriods: periods,
    treatMissingData: cloudwatch.TreatMissingData[ringsWithoutData ? "BREACHING" : "NOT_BREACHING"],
  });
}

function createTopic(scope: Construct, { name, alarmEmail }: MonitoredResources["stage"]): sns.Topic {
  // Nothing in an alarm is secret, and CloudWatch cannot publish to a topic under AWS's own KMS key.
  const topic = new sns.Topic(scope, "Topic", { displayName: `Deployment webhooks, ${name}`, enforceSSL: true });
  // With a policy of its own (which enforceSSL makes), a topic has lost the one that lets its account's alarms in.
  topic.addToResourcePolicy(
    new iam.PolicyStatement({
      principals: [new iam.ServicePrincipal("cloudwatch.amazonaws.com")],
      actions: ["sns:Publish"],
      resources: [topic.topicArn],
      conditions: { StringEquals: { "aws:SourceAccount": Stack.of(scope).account } },
    }),
  );
  if (alarmEmail !== undefined) topic.addSubscription(new EmailSubscription(alarmEmail));
  return topic;
}

function rowsFor(watched: MonitoredResources): AlarmRow[] {
  return [
    ...Object.entries(watched.queues).map(([key, { deadLetters }]) => deadLettersRow(key as QueueKey, deadLetters)),
    ...Object.entries(watched.queues).map(([key, { queue }]) => waitingRow(key as QueueKey, queue)),
    queuesStuck(watched),
    ...deliveryRows(watched),
    ...sweepRows(watched),
    ...frontDoorRows(watched),
    ...errorRows(watched),
    ...capacityRows(watched),
  ];
}

const deadLettersMean: Record<QueueKey, string> = {
  events:
    "Deployment events were not turned into deliveries: their webhooks are not called until the events are put back.",
  deliveries: "Attempts failed by a fault of ours, five times each: those webhooks are called late, again and again.",
};

/** Receivers that fail are no reason to be here (functions/deliveries retries them). */
function deadLettersRow(key: QueueKey, queue: Queues[QueueKey]["deadLetters"]): AlarmRow {
  return {
    id: `${key}-dead-letters`,
    severity: "page",
    meaning: deadLettersMean[key],
    metric: queue.metricApproximateNumberOfMessagesVisible({ period: MINUTE, statistic: MAX }),
    when: { atLeast: 1 },
  };
}

/** https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-delay-queues.html */
const LONGEST_DELAY_SECONDS: Record<QueueKey, number> = { events: 0, deliveries: 900 };

/**
 * How old the oldest message may get while all is well. The age counts from when it was sent; AWS does not say whether it
 * counts during a delay, so a delay is taken to count. A message that fails is hidden and comes back; after three receives
 * the metric passes over it, so that a single bad message gets no older than this (and then is a dead letter). What does is a
 * queue that is not worked off. https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-available-cloudwatch-metrics.html
 */
export function oldestHealthySeconds(key: QueueKey): number {
  const { visibilitySeconds }: QueueRow = queueRows[key];
  return LONGEST_DELAY_SECONDS[key] + 3 * visibilitySeconds;
}

const waitingMeans: Record<QueueKey, string> = {
  events: "Deployment events wait for ten minutes and more: no webhook hears of a deployment in time.",
  deliveries: "Deliveries wait although their time has come: webhooks are called late.",
};

function waitingRow(key: QueueKey, queue: Queues[QueueKey]["queue"]): AlarmRow {
  return {
    id: `${key}-waiting`,
    severity: "page",
    meaning: waitingMeans[key],
    metric: queue.metricApproximateAgeOfOldestMessage({ period: MINUTE, statistic: MAX }),
    when: { atLeast: oldestHealthySeconds(key) + 60 },
    periods: 3,
  };
}

/**
 * There are messages, and none gets done. A consumer that fails on every message reports them as failures of the batch: to
 * Lambda it has not failed.
 */
function queuesStuck({ queues }: MonitoredResources): AlarmRow {
  const used: Record<string, cloudwatch.IMetric> = {};
  const stuck = Object.entries(queues).map(([key, { queue }]) => {
    used[`${key}Visible`] = queue.metricApproximateNumberOfMessagesVisible({ statistic: MAX });
    used[`${key}Received`] = queue.metricNumberOfMessagesReceived({ statistic: SUM });
    used[`${key}Done`] = queue.metricNumberOfMessagesDeleted({ statistic: SUM });
    return `((${key}Visible + ${key}Received) > 0 AND ${key}Done < 1)`;
  });
  return {
    id: "queues-stuck",
    severity: "page",
    meaning: "A queue holds messages of which none gets done: webhooks are not called at all.",
    metric: math(`IF(${stuck.join(" OR ")}, 1, 0)`, MINUTE, used),
    when: { atLeast: 1 },
    periods: 5,
  };
}

/**
 * No anomaly detection: it costs three metrics an alarm, learns for two weeks, and takes a decline for the new normal. A
 * receiver that fails cannot pull the rate down for long: after 30 seconds it is probed, one delivery at a time.
 */
function deliveryRows({ stage }: MonitoredResources): AlarmRow[] {
  const first = (statistic: string) => ownMetric(stage, "firstAttemptSuccess", { statistic });
  const lateness = (statistic: string) => ownMetric(stage, "eventToFirstAttempt", { statistic });
  return [
    {
      id: "first-attempts-failing",
      severity: "page",
      meaning: "Three in ten first attempts fail, at many receivers at once: it is probably us who cannot reach them.",
      metric: math("IF(attempts >= 50, 100 * (1 - success), 0)", FIVE_MINUTES, {
        attempts: first(SAMPLES),
        success: first("Average"),
      }),
      when: { atLeast: 30 },
      periods: 3,
    },
    {
      id: "first-attempts-late",
      severity: "page",
      // Half of them: the few that a single failure of ours puts off by minutes wake nobody.
      meaning: "Half of the webhooks are called more than 30 seconds after the event.",
      metric: math("IF(attempts >= 20, lateness, 0)", FIVE_MINUTES, {
        attempts: lateness(SAMPLES),
        lateness: lateness("p50"),
      }),
      when: { atLeast: 30_000 },
      periods: 2,
    },
  ];
}

function sweepRows({ stage }: MonitoredResources): AlarmRow[] {
  return [
    {
      id: "sweep-late",
      severity: "page",
      meaning: "Retries go out more than five minutes late, and lost messages are made up for as late.",
      metric: ownMetric(stage, "sweepLag", { statistic: MAX, period: MINUTE }),
      when: { atLeast: 300 },
      periods: 3,
    },
    {
      id: "sweep-not-running",
      severity: "page",
      meaning: "No retry later than 15 minutes goes out, and a message that is lost is not made up for.",
      // A run that did not look at everything writes no lag: that it was started would say nothing.
      metric: ownMetric(stage, "sweepLag", { statistic: SAMPLES, period: MINUTE }),
      when: { below: 1 },
      periods: 5,
      ringsWithoutData: true,
    },
  ];
}

/**
 * API Gateway may count an error of its own as a 4XXError once its status is remapped, which functions/manifest/gateway-responses.ts
 * does to an authorizer's failure: so the authorizer has an alarm of its own.
 * https://docs.aws.amazon.com/apigateway/latest/developerguide/api-gateway-metrics-and-dimensions.html
 */
function frontDoorRows({ stage, api, functions }: MonitoredResources): AlarmRow[] {
  const { deploymentStage: door } = api;
  const authorizer = named(functions, "auth/authorizer");
  return [
    {
      id: "api-errors",
      severity: "page",
      meaning: "One request in twenty is answered with a 5xx.",
      metric: math("IF(errors >= 5, 100 * errors / requests, 0)", FIVE_MINUTES, {
        errors: door.metricServerError({ statistic: SUM }),
        requests: door.metricCount({ statistic: SAMPLES }),
      }),
      when: { atLeast: 5 },
    },
    {
      id: "api-slow",
      severity: "ticket",
      meaning: "One request in a hundred takes three seconds and more.",
      metric: math("IF(requests >= 100, latency, 0)", FIVE_MINUTES, {
        requests: door.metricCount({ statistic: SAMPLES }),
        latency: door.metricLatency({ statistic: "p99" }),
      }),
      when: { atLeast: 3_000 },
      periods: 3,
    },
    {
      id: "authorizer-errors",
      severity: "page",
      meaning: "Credentials cannot be checked: requests are answered with 503, whoever sends them.",
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
        "Credentials are refused by the thousand: a client with a dead credential that does not stop, or somebody guessing.",
      metric: ownMetric(stage, "rejectedCredentials", { statistic: SUM, period: FIVE_MINUTES }),
      when: { atLeast: 1_000 },
      periods: 2,
    },
  ];
}

/** An Error of a Lambda is a crash, a timeout or no memory left: what a function catches it answers, or reports as failed. */
function errorRows({ functions }: MonitoredResources): AlarmRow[] {
  const errorsOf = (files: string[]) => files.map((file) => named(functions, file).metricErrors({ statistic: SUM }));
  const pipeline = workers.filter(({ trigger }) => trigger.kind === "queue" || trigger.kind === "everyMinutes");
  const invoked = workers.filter(({ trigger }) => trigger.kind === "invoke");
  const answering = [...endpoints, ...invoked].map(({ file }) => file);
  return [
    {
      id: "delivery-errors",
      severity: "page",
      meaning: "Fan-out, sender or sweep crash: deliveries are minutes late, and may come twice.",
      metric: sum(errorsOf(pipeline.map(({ file }) => file))),
      when: { atLeast: 5 },
      periods: 2,
    },
    ...groups(answering).map((files, index): AlarmRow => {
      return {
        id: `endpoint-errors-${index + 1}`,
        section: "endpoint-errors",
        severity: "ticket",
        meaning: "An endpoint crashes or runs out of time: its callers get a 5xx.",
        metric: sum(errorsOf(files)),
        when: { atLeast: 3 },
      };
    }),
  ];
}

/** Above this share of the account's concurrency, a burst would be throttled. */
const CONCURRENCY_PERCENT = 80;

function capacityRows({ functions, tables }: MonitoredResources): AlarmRow[] {
  // All functions of the account draw on one pool, and every request asks the authorizer first: the endpoints are not in it.
  const throttles = workers.map(({ file }) => named(functions, file).metricThrottles({ statistic: SUM }));
  return [
    {
      id: "function-throttles",
      severity: "page",
      meaning: "Lambda refuses to run the functions: requests fail, deliveries wait.",
      metric: sum(throttles),
      when: { atLeast: 10 },
    },
    {
      id: "concurrency-high",
      severity: "ticket",
      meaning:
        "The account's functions are close to what may run at once: at the limit requests fail and deliveries wait.",
      // https://docs.aws.amazon.com/lambda/latest/dg/monitoring-concurrency.html#claimed-account-concurrency
      metric: math("100 * claimed / SERVICE_QUOTA(running)", FIVE_MINUTES, {
        claimed: claimedConcurrency(),
        running: new cloudwatch.Metric({
          namespace: "AWS/Usage",
          metricName: "ConcurrentExecutions",
          dimensionsMap: { Type: "Resource", Service: "Lambda", Resource: "ConcurrentExecutions", Class: "None" },
          statistic: MAX,
        }),
      }),
      when: { atLeast: CONCURRENCY_PERCENT },
    },
    ...(["Read", "Write"] as const).map((kind): AlarmRow => {
      return {
        id: `table-${kind.toLowerCase()}-throttles`,
        section: "table-throttles",
        severity: "ticket",
        meaning: "DynamoDB refuses reads or writes for a while: requests and deliveries are slower, some fail.",
        metric: sum(throttleEvents(tables, kind), named(functions, "deliveries/sweep")),
        when: { atLeast: 100 },
        periods: 2,
      };
    }),
  ];
}

/** Of every table and of every index, which count their own. */
export function throttleEvents(tables: Tables, kind: "Read" | "Write"): cloudwatch.Metric[] {
  return Object.entries<TableRow>(tableRows).flatMap(([key, { indexes = [] }]) => {
    const TableName = tables[key as keyof Tables].tableName;
    const dimensions = [{ TableName }, ...indexes.map(({ name }) => ({ TableName, GlobalSecondaryIndexName: name }))];
    return dimensions.map(
      (dimensionsMap) =>
        new cloudwatch.Metric({
          namespace: "AWS/DynamoDB",
          metricName: `${kind}ThrottleEvents`,
          dimensionsMap,
          statistic: SUM,
        }),
    );
  });
}

/** What on-demand calls of all functions of the account and region have to share, as far as it is taken. */
export const claimedConcurrency = (): cloudwatch.Metric =>
  new cloudwatch.Metric({ namespace: "AWS/Lambda", metricName: "ClaimedAccountConcurrency", statistic: MAX });

interface MetricOptions {
  statistic: string;
  period?: Duration;
  /** Value of the metric's own dimension; absent = all values together. */
  value?: string;
}

/** A metric that the functions write (functions/manifest/metrics.ts). */
export function ownMetric(
  stage: MonitoredResources["stage"],
  key: MetricKey,
  { statistic, period = FIVE_MINUTES, value }: MetricOptions,
): cloudwatch.Metric {
  const row: { name: string; dimension?: string } = metrics[key];
  if (value !== undefined && row.dimension === undefined) throw new Error(`${row.name} has no dimension of its own`);
  return new cloudwatch.Metric({
    namespace: METRICS_NAMESPACE,
    metricName: row.name,
    dimensionsMap: { stage: stage.name, ...(value !== undefined && row.dimension && { [row.dimension]: value }) },
    statistic,
    period,
  });
}

/** @throws Error at synthesis when a row names a function that is not watched */
/** The function itself, not its alias: all versions count. */
export function named(functions: MonitoredResources["functions"], file: string): lambda.Function {
  const found = functions[file];
  if (found === undefined) throw new Error(`The function ${file} is not watched`);
  return found.lambda;
}

/** CloudWatch takes so many metrics in the expression of an alarm. */
const MAX_METRICS = 10;

function groups(files: string[]): string[][] {
  const count = Math.ceil(files.length / MAX_METRICS);
  const size = Math.ceil(files.length / count);
  return Array.from({ length: count }, (_, index) => files.slice(index * size, (index + 1) * size));
}

/**
 * Where one operand has no data, + takes it for 0; where all have none, so has the sum. An alarm on DynamoDB's metrics then
 * stays as it was, whatever it is told about missing data: with the runs of a function that runs all the time, times
 * nothing, there always is data. https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_PutMetricAlarm.html
 */
function sum(terms: cloudwatch.Metric[], heartbeat?: lambda.Function): cloudwatch.MathExpression {
  const used = Object.fromEntries(terms.map((metric, index) => [`m${index}`, metric]));
  const expression = Object.keys(used).join(" + ");
  if (!heartbeat) return math(expression, FIVE_MINUTES, used);
  const beat = heartbeat.metricInvocations({ statistic: SUM });
  return math(`${expression} + 0 * beat`, FIVE_MINUTES, { ...used, beat });
}

export function math(
  expression: string,
  period: Duration,
  usingMetrics: Record<string, cloudwatch.IMetric>,
  label = "",
): cloudwatch.MathExpression {
  return new cloudwatch.MathExpression({ expression, usingMetrics, period, label });
}

const MINUTE = Duration.minutes(1);
const FIVE_MINUTES = Duration.minutes(5);
const { SUM, MAXIMUM: MAX, SAMPLE_COUNT: SAMPLES } = cloudwatch.Stats;
