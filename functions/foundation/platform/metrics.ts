import { METRICS_NAMESPACE, type MetricKey, type MetricRow, metrics } from "../manifest/metrics.ts";

/** Measured values by the keys of functions/foundation/manifest/metrics.ts; undefined = not measured. */
export type MetricValues = { [Key in MetricKey]?: number | undefined };

/** The fields that a log line must have because they are dimensions of its metrics. */
export type DimensionsOf<Values> = {
  [Key in keyof Values & MetricKey as (typeof metrics)[Key] extends {
    dimensions: readonly (infer Name extends string)[];
  }
    ? Name
    : never]: string;
};

/**
 * Returns the fields of a log line from which CloudWatch extracts metrics (embedded metric format).
 * https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch_Embedded_Metric_Format_Specification.html
 *
 * Does not use @aws-lambda-powertools/metrics 2.35.0, which gives all metrics of a line the same dimensions (so that
 * each would be billed once per outcome), mixes the concurrent attempts of a batch in one line, and adds 17 KB to the
 * bundle.
 * @param measured one to 100 measurements with the same dimension values
 * @param stage name of the stage, a dimension of every metric
 * @returns an empty object when nothing was measured
 */
export function embeddedMetrics(measured: MetricValues[], stage: string, now: Date): object {
  const values = (Object.keys(metrics) as MetricKey[]).flatMap((key) => {
    const list = measured.flatMap((each) => each[key] ?? []);
    return list.length === 0 ? [] : [{ ...row(key), value: list.length === 1 ? list[0] : list }];
  });
  if (values.length === 0) return {};
  const directives = [...Map.groupBy(values, ({ dimensions }) => dimensions)].map(([dimensions = [], group]) => ({
    Namespace: METRICS_NAMESPACE,
    Dimensions: [["stage"], ...dimensions.map((dimension) => ["stage", dimension])],
    Metrics: group.map(({ name, unit }) => ({ Name: name, Unit: unit })),
  }));
  return {
    _aws: { Timestamp: now.getTime(), CloudWatchMetrics: directives },
    stage,
    ...Object.fromEntries(values.map(({ name, value }) => [name, value])),
  };
}

const row = (key: MetricKey): MetricRow => metrics[key];

/** Returns the fields of a log line that are dimensions of these metrics. */
export function dimensionsOf(measured: MetricValues, fields: Record<string, unknown>): Record<string, unknown> {
  const keys = (Object.keys(measured) as MetricKey[]).filter((key) => measured[key] !== undefined);
  const names = keys.flatMap((key) => row(key).dimensions ?? []);
  return Object.fromEntries(names.map((name) => [name, fields[name]]));
}
