import { Duration } from "aws-cdk-lib";
import * as cloudwatch from "aws-cdk-lib/aws-cloudwatch";
import { METRICS_NAMESPACE, type MetricKey, metrics } from "../../functions/foundation/manifest/metrics.ts";
import { type TableRow, tables as tableRows } from "../../functions/foundation/manifest/tables.ts";
import { SERVER_ERRORS } from "../access-log.ts";
import type { Queues } from "../queues.ts";
import type { Stage } from "../stage.ts";
import type { Tables } from "../tables.ts";

/* CloudWatch metrics that the alarms and the dashboard read. */

export const MINUTE = Duration.minutes(1);
export const FIVE_MINUTES = Duration.minutes(5);
export const TEN_MINUTES = Duration.minutes(10);
export const HOUR = Duration.hours(1);
export const { SUM, MAXIMUM, AVERAGE, SAMPLE_COUNT } = cloudwatch.Stats;

interface MetricOptions {
  statistic: string;
  /** Default: five minutes. */
  period?: Duration;
  /** Values of dimensions beside the stage. Default: none, for all values of its own dimensions. */
  dimensions?: Record<string, string>;
}

/** Returns a metric that the functions write (functions/foundation/manifest/metrics.ts). */
export function ownMetric(
  stage: Pick<Stage, "name">,
  key: MetricKey,
  { statistic, period = FIVE_MINUTES, dimensions }: MetricOptions,
): cloudwatch.Metric {
  return new cloudwatch.Metric({
    namespace: METRICS_NAMESPACE,
    metricName: metrics[key].name,
    dimensionsMap: { stage: stage.name, ...dimensions },
    statistic,
    period,
  });
}

/** Returns the number of requests that got a 5xx response, by the access log. */
export const serverErrors = (stage: Pick<Stage, "name">, period = FIVE_MINUTES): cloudwatch.Metric =>
  new cloudwatch.Metric({
    namespace: METRICS_NAMESPACE,
    metricName: SERVER_ERRORS,
    dimensionsMap: { stage: stage.name },
    statistic: SUM,
    period,
  });

/**
 * Returns the age of the oldest delivery in the queue of the projects that are not noisy. The group of a message is its
 * project (functions/deliveries/line/delivery-queue.ts).
 * https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-fair-queues.html
 */
export const quietDeliveriesAge = ({ deliveries }: Queues): cloudwatch.Metric =>
  deliveries.queue.metric("ApproximateAgeOfOldestMessageInQuietGroups", { statistic: MAXIMUM, period: MINUTE });

/** Returns the throttle events of every table and of every index, which DynamoDB counts separately. */
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

/**
 * Returns the concurrency in use of the account and region, reserved concurrency included.
 * https://docs.aws.amazon.com/lambda/latest/dg/monitoring-concurrency.html#claimed-account-concurrency
 */
export const claimedConcurrency = (): cloudwatch.Metric =>
  new cloudwatch.Metric({ namespace: "AWS/Lambda", metricName: "ClaimedAccountConcurrency", statistic: MAXIMUM });

/** Returns an expression over metrics. `period` overrides the period of each of them. */
export function math(
  expression: string,
  period: Duration,
  usingMetrics: Record<string, cloudwatch.IMetric>,
  label = "",
): cloudwatch.MathExpression {
  return new cloudwatch.MathExpression({ expression, usingMetrics, period, label });
}

/** Returns the sum of metrics. An operand without data counts as 0 if any other operand has data. */
export function sum(terms: cloudwatch.Metric[], { name = "m", period = FIVE_MINUTES, label = "" } = {}) {
  const used = Object.fromEntries(terms.map((metric, index) => [`${name}${index}`, metric]));
  return math(Object.keys(used).join(" + "), period, used, label);
}
