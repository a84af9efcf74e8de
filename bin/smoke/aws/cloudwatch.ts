import * as z from "zod/mini";
import { callJson } from "./api.ts";
import { namesOf, type StageStack } from "./stack.ts";

/*
 * Alarms and metrics of a stage. Shapes: https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/ Times are
 * seconds since the epoch.
 */

const metric = z.object({
  Namespace: z.optional(z.string()),
  MetricName: z.optional(z.string()),
  Dimensions: z._default(z.array(z.object({ Name: z.string(), Value: z.string() })), []),
});

/** A metric by its identity: its name and all its dimensions. */
export type MetricId = z.output<typeof metric>;

const metricQuery = z.looseObject({
  Id: z.string(),
  Expression: z.optional(z.string()),
  MetricStat: z.optional(z.looseObject({ Metric: metric })),
  ReturnData: z.optional(z.boolean()),
});

const alarm = z.object({
  AlarmName: z.string(),
  StateValue: z.string(),
  ...metric.shape,
  Metrics: z._default(z.array(metricQuery), []),
});
export type Alarm = z.output<typeof alarm>;

/** What an operator's programs know of the account. */
export interface StageAccount {
  stack: StageStack;
  alarms: Alarm[];
}

/** Maximum number of names in one call of DescribeAlarms. */
const ALARMS_PER_CALL = 100;

/** Returns the alarms of a stack, those for gradual deployments included. */
export const readAlarms = (stack: StageStack): Promise<Alarm[]> =>
  describeAlarms(namesOf(stack, "AWS::CloudWatch::Alarm"));

/** Returns alarms by their names. */
export async function describeAlarms(names: string[]): Promise<Alarm[]> {
  const alarms: Alarm[] = [];
  for (let start = 0; start < names.length; start += ALARMS_PER_CALL) {
    const AlarmNames = names.slice(start, start + ALARMS_PER_CALL);
    const input = { AlarmNames, AlarmTypes: ["MetricAlarm"], MaxRecords: ALARMS_PER_CALL };
    alarms.push(...(await callJson("cloudwatch", "DescribeAlarms", input, describedAlarms)).MetricAlarms);
  }
  return alarms;
}

const describedAlarms = z.object({ MetricAlarms: z._default(z.array(alarm), []) });

/** Returns the metrics that an alarm reads, those in its expressions included. */
export function metricsOf({ Metrics, Namespace, MetricName, Dimensions }: Alarm): MetricId[] {
  if (MetricName !== undefined) return [{ Namespace, MetricName, Dimensions }];
  return Metrics.flatMap(({ MetricStat }) => (MetricStat ? [MetricStat.Metric] : []));
}

/** Returns a text that is the same for the same metric. */
export const keyOf = ({ Namespace, MetricName, Dimensions }: MetricId): string =>
  `${Namespace} ${MetricName} ${Dimensions.map(({ Name, Value }) => `${Name}=${Value}`)
    .sort()
    .join()}`.trim();

/** Returns all metrics with this name that had a value in the last two weeks. */
export async function listMetrics(Namespace: string, MetricName: string): Promise<MetricId[]> {
  const found: MetricId[] = [];
  let NextToken: string | undefined;
  do {
    const input = { Namespace, MetricName, ...(NextToken && { NextToken }) };
    const page = await callJson("cloudwatch", "ListMetrics", input, listedMetrics);
    found.push(...page.Metrics);
    NextToken = page.NextToken || undefined;
  } while (NextToken !== undefined);
  return found;
}

const listedMetrics = z.object({
  Metrics: z._default(z.array(metric), []),
  NextToken: z.optional(z.nullable(z.string())),
});

/** What CloudWatch returns for one query: the values of its periods, newest first. */
export interface QueryResult {
  id: string;
  status: string;
  values: number[];
  /** Messages of CloudWatch about this query, such as an expression that it cannot evaluate. */
  messages: string[];
}

/** Evaluates queries over a time span. @throws AwsError `ValidationError` for an expression that is not valid */
export async function getMetricData(queries: object[], from: Date, to: Date): Promise<QueryResult[]> {
  const input = { MetricDataQueries: queries, StartTime: secondsOf(from), EndTime: secondsOf(to) };
  const { MetricDataResults, Messages } = await callJson("cloudwatch", "GetMetricData", input, metricData);
  const general = textOf(Messages);
  return MetricDataResults.map(({ Id, StatusCode, Values, Messages: own }) => ({
    id: Id,
    status: StatusCode,
    values: Values,
    messages: [...general, ...textOf(own)],
  }));
}

const messages = z._default(z.nullable(z.array(z.object({ Code: z.string(), Value: z.string() }))), []);
const metricData = z.object({
  MetricDataResults: z._default(
    z.array(
      z.object({
        Id: z.string(),
        StatusCode: z._default(z.string(), "Complete"),
        Values: z._default(z.array(z.number()), []),
        Messages: messages,
      }),
    ),
    [],
  ),
  Messages: messages,
});
const textOf = (list: z.output<typeof messages>): string[] =>
  (list ?? []).map(({ Code, Value }) => `${Code}: ${Value}`);

export const secondsOf = (time: Date): number => Math.floor(time.getTime() / 1000);
