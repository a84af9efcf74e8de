import * as z from "zod/mini";
import { METRICS_NAMESPACE, type MetricKey, metrics } from "../../functions/foundation/manifest/metrics.ts";
import { logSink } from "../../functions/foundation/platform/log.ts";

const text = z.string().check(z.minLength(1), z.maxLength(1024));
const units = ["Count", "Milliseconds", "Seconds"] as const;

/**
 * Schema of a document in the embedded metric format, limited to the features that this service uses: dimensions are
 * strings, and metrics are numbers or lists of numbers, at the top level.
 * https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch_Embedded_Metric_Format_Specification.html
 */
export const embeddedMetricSchema = z
  .looseObject({
    _aws: z.strictObject({
      Timestamp: z.int().check(z.gte(Date.parse("2026-01-01"))),
      CloudWatchMetrics: z
        .array(
          z.strictObject({
            Namespace: z.literal(METRICS_NAMESPACE),
            Dimensions: z.array(z.array(text).check(z.minLength(1), z.maxLength(30))).check(z.minLength(1)),
            Metrics: z
              .array(z.strictObject({ Name: text, Unit: z.enum(units) }))
              .check(z.minLength(1), z.maxLength(100)),
          }),
        )
        .check(z.minLength(1)),
    }),
  })
  .check(
    z.refine((document) =>
      document._aws.CloudWatchMetrics.every(
        ({ Dimensions, Metrics }) =>
          Dimensions.flat().every((name) => text.safeParse(document[name]).success) &&
          Metrics.every(({ Name }) => valuesOf(document[Name]).every(Number.isFinite)),
      ),
    ),
  );

/** Returns the values of a metric: one number, or a list of at most 100. */
function valuesOf(value: unknown): number[] {
  const values = [value].flat() as number[];
  expect(values.length).toBeGreaterThan(0);
  expect(values.length).toBeLessThanOrEqual(100);
  return values;
}

export interface LoggedLine {
  level: string;
  message: string;
  [field: string]: unknown;
}

/** Records all log lines from now on, in the form written to CloudWatch. */
export function watchLog(): LoggedLine[] {
  const lines: LoggedLine[] = [];
  logSink.write = (level, line) => void lines.push(JSON.parse(JSON.stringify({ level, ...line })));
  return lines;
}

/**
 * Extracts the metric values from log lines, as CloudWatch does, in the order of the lines.
 * @throws ZodError for a line with `_aws` that is not a valid embedded metric document
 */
export function metricsIn(lines: LoggedLine[]): { [Key in MetricKey]?: number[] } {
  const found: { [Key in MetricKey]?: number[] } = {};
  const keys = Object.keys(metrics) as MetricKey[];
  for (const line of lines.filter(({ _aws }) => _aws !== undefined)) {
    const document = embeddedMetricSchema.parse(line);
    const names = document._aws.CloudWatchMetrics.flatMap(({ Metrics }) => Metrics.map(({ Name }) => Name));
    for (const key of keys.filter((key) => names.includes(metrics[key].name))) {
      found[key] = [...(found[key] ?? []), ...valuesOf(line[metrics[key].name])];
    }
  }
  return found;
}
