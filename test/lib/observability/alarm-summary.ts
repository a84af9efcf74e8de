import { idOf, type Json, type Resource, type SynthesizedStack } from "../synthesized.ts";
import { evaluate } from "./metric-math.ts";

/* Alarms of a template in a form that tests can compare with literals. */

type Alarm = Pick<Resource, "Properties">;

export const nameOf = ({ Properties }: Alarm): string => Properties.AlarmName;

export const isRollback = (alarm: Alarm): boolean => nameOf(alarm).includes("-rollback-");

interface AlarmSummary {
  /** `<statistic> of <metric> {<dimensions>}`; if there are several, the expression and each metric by its id. */
  reads: string | Record<string, string>;
  fires: string;
  missingData: string;
  section: string;
}

export function summaryOf(stack: SynthesizedStack, alarm: Alarm): AlarmSummary {
  const { ComparisonOperator, Threshold, EvaluationPeriods, TreatMissingData, AlarmDescription } = alarm.Properties;
  const operator = { GreaterThanOrEqualToThreshold: ">=", LessThanThreshold: "<" }[String(ComparisonOperator)];
  const read = metricsOf(alarm);
  const summaries = read.map((metric) => `${metric.Stat} of ${metric.MetricName} ${dimensionsOf(stack, metric)}`);
  const [first = ""] = summaries;
  // Absent means that all periods have to be bad.
  expect(alarm.Properties).not.toHaveProperty("DatapointsToAlarm");
  return {
    reads: alarm.Properties.Metrics
      ? {
          expression: expressionOf(alarm),
          ...Object.fromEntries(read.map(({ Id }, index) => [Id, summaries[index] ?? ""])),
        }
      : first,
    fires: `${operator} ${Threshold}, for ${EvaluationPeriods} x ${read[0]?.Period} s`,
    missingData: TreatMissingData,
    section: /docs\/runbook\.md#([\w-]+)$/.exec(AlarmDescription)?.[1] ?? "",
  };
}

/** Returns the metrics that an alarm reads: its own, or those in its expression. */
export function metricsOf({ Properties }: Alarm): Json[] {
  if (Properties.Metrics === undefined) {
    return [{ ...Properties, Stat: Properties.Statistic ?? Properties.ExtendedStatistic }];
  }
  return Properties.Metrics.flatMap(({ Id, MetricStat }: Json) =>
    MetricStat ? [{ Id, ...MetricStat.Metric, Period: MetricStat.Period, Stat: MetricStat.Stat }] : [],
  );
}

const expressionOf = ({ Properties }: Alarm): string =>
  Properties.Metrics.find(({ Expression }: Json) => Expression !== undefined).Expression;

/** Returns `{name=value, …}`, with names of queues and tables, and files of functions, instead of references. */
function dimensionsOf(stack: SynthesizedStack, { Dimensions = [] }: Json): string {
  const texts = Dimensions.map(({ Name, Value }: Json) => `${Name}=${dimensionText(stack, Value)}`);
  return `{${texts.sort().join(", ")}}`;
}

function dimensionText(stack: SynthesizedStack, value: Json): string {
  if (typeof value === "string") return value;
  if (value["Fn::Join"]) return value["Fn::Join"][1].map((part: Json) => dimensionText(stack, part)).join("");
  const resource = stack.target(value);
  const { QueueName, TableName, StageName, Name } = resource.Properties;
  if (resource.Type === "AWS::Lambda::Function") return idOf(resource);
  if (resource.Type === "AWS::Lambda::Version") return "new";
  return QueueName ?? TableName ?? StageName ?? Name;
}

/**
 * Returns whether a period with these values is bad.
 * @param values the metrics that have data in the period, by id; the others have none
 * @param quotas applied quotas by usage metric, as summaryOf writes it; absent = none is known
 * @throws Error when the expression asks for the quota of a metric that has none
 */
export function isBad(
  stack: SynthesizedStack,
  alarm: Alarm,
  values: Record<string, number>,
  quotas: Record<string, number> = {},
): boolean {
  const read = metricsOf(alarm);
  const ids: string[] = read.map(({ Id }) => Id);
  for (const given of Object.keys(values)) expect(ids).toContain(given);
  const quotaOf = (id: string) => {
    const metric = read.find(({ Id }) => Id === id);
    const usage = `${metric?.Namespace} ${metric?.MetricName} ${dimensionsOf(stack, metric ?? {})}`;
    if (quotas[usage] === undefined) throw new Error(`There is no service quota associated to ${usage}.`);
    return quotas[usage];
  };
  const value = evaluate(expressionOf(alarm), { metricOf: (id) => values[id], quotaOf });
  expect(alarm.Properties).toMatchObject({
    ComparisonOperator: "GreaterThanOrEqualToThreshold",
    TreatMissingData: "notBreaching",
  });
  return value !== undefined && value >= alarm.Properties.Threshold;
}
