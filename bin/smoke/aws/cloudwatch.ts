import { DescribeAlarmsCommand, type MetricAlarm, type Metric as MetricId } from "@aws-sdk/client-cloudwatch";
import { cloudWatch } from "./clients.ts";
import { namesOf, type StageStack } from "./stack.ts";

/* Alarms and metrics of a stage. */

export type { MetricId };

const toAlarm = ({ AlarmName = "", StateValue, Metrics = [], ...metric }: MetricAlarm) => ({
  AlarmName,
  StateValue,
  Metrics,
  ...metric,
});
export type Alarm = ReturnType<typeof toAlarm>;

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
    const command = new DescribeAlarmsCommand({ AlarmNames, MaxRecords: ALARMS_PER_CALL });
    const { MetricAlarms = [] } = await cloudWatch.send(command);
    alarms.push(...MetricAlarms.map(toAlarm));
  }
  return alarms;
}

/** Returns the metrics that an alarm reads, those in its expressions included. */
export function metricsOf({ Metrics, Namespace, MetricName, Dimensions }: Alarm): MetricId[] {
  if (MetricName !== undefined) return [{ Namespace, MetricName, Dimensions }];
  return Metrics.flatMap(({ MetricStat }) => MetricStat?.Metric ?? []);
}

/** Returns a text that is the same for the same metric. */
export const keyOf = ({ Namespace, MetricName, Dimensions = [] }: MetricId): string =>
  `${Namespace} ${MetricName} ${Dimensions.map(({ Name, Value }) => `${Name}=${Value}`)
    .sort()
    .join()}`.trim();
