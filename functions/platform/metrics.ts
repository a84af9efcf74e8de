import { METRICS_NAMESPACE, type MetricKey, type MetricRow, metrics } from "../manifest/metrics.ts";

/** What was measured, by the keys of functions/manifest/metrics.ts. What is undefined was not. */
export type Measured = { [Key in MetricKey]?: number | undefined };

/** The fields that a line must have because its metrics are counted by them. */
export type DimensionsOf<Values> = {
  [Key in keyof Values & MetricKey as (typeof metrics)[Key] extends { dimension: infer Name extends string }
    ? Name
    : never]: string;
};

/**
 * The part of a log line from which CloudWatch makes metrics (embedded metric format): what the values are, and the values,
 * beside the line's own fields. Nothing of it when nothing was measured.
 * https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch_Embedded_Metric_Format_Specification.html
 *
 * By hand, and not by @aws-lambda-powertools/metrics 2.35.0: that gives all metrics of a line the same dimensions, so that
 * each would exist (and cost) once per outcome; it mixes the concurrent attempts of a batch into one line; and it is 17 KB
 * of bundle.
 * @param measured once or several times, at most a hundred, with the same dimensions
 * @param stage name of the stage, a dimension of every metric
 */
export function embeddedMetrics(measured: Measured[], stage: string, now: Date): object {
  const values = (Object.keys(metrics) as MetricKey[]).flatMap((key) => {
    const list = measured.flatMap((each) => each[key] ?? []);
    return list.length === 0 ? [] : [{ ...row(key), value: list.length === 1 ? list[0] : list }];
  });
  if (values.length === 0) return {};
  const directives = [...Map.groupBy(values, ({ dimension }) => dimension)].map(([dimension, group]) => ({
    Namespace: METRICS_NAMESPACE,
    Dimensions: [["stage"], ...(dimension === undefined ? [] : [["stage", dimension]])],
    Metrics: group.map(({ name, unit }) => ({ Name: name, Unit: unit })),
  }));
  return {
    _aws: { Timestamp: now.getTime(), CloudWatchMetrics: directives },
    stage,
    ...Object.fromEntries(values.map(({ name, value }) => [name, value])),
  };
}

const row = (key: MetricKey): MetricRow => metrics[key];

/** Those of a line's fields by which what was measured is counted. */
export function dimensionsOf(measured: Measured, fields: Record<string, unknown>): Record<string, unknown> {
  const keys = (Object.keys(measured) as MetricKey[]).filter((key) => measured[key] !== undefined);
  const names = keys.flatMap((key) => row(key).dimension ?? []);
  return Object.fromEntries(names.map((name) => [name, fields[name]]));
}
