import { GetMetricDataCommand, paginateListMetrics } from "@aws-sdk/client-cloudwatch";
import { METRICS_NAMESPACE, metrics } from "../../functions/foundation/manifest/metrics.ts";
import { AwsError, cloudWatch } from "./aws/clients.ts";
import { type Alarm, keyOf, type MetricId, metricsOf, readAlarms } from "./aws/cloudwatch.ts";
import { namesOf, readStack } from "./aws/stack.ts";
import { assert, type CheckGroup } from "./check.ts";

/*
 * `--stage`: what only CloudWatch can answer, and nothing else reports. An alarm on a metric that no one writes, or with an
 * expression that has no value, never rings. All calls read.
 */

const counted = (number: number, one: string): string => `${number} ${number === 1 ? one : `${one}s`}`;

export const monitoring: CheckGroup = {
  title: "Metrics and alarms",
  sections: ["Set up your shell", "The first five minutes"],
  async run({ options: { stage = "" } }, check) {
    const claim = "the alarms of the stage can be read with the credentials of the environment";
    const alarms = await check(
      claim,
      async () => {
        const stack = await readStack(stage);
        const found = await readAlarms(stack);
        const defined = namesOf(stack, "AWS::CloudWatch::Alarm").length;
        const existing = `${found.length} of ${defined} alarms of ${stack.name} exist in this region: check AWS_REGION`;
        assert(found.length === defined, existing);
        return found;
      },
      ({ length }) => counted(length, "alarm"),
    );
    await check("every metric that an alarm reads exists", () => requireMetrics(alarms), String).catch(() => {});
    await check("every alarm's expression can be evaluated", () => requireValues(alarms), String).catch(() => {});
  },
};

/**
 * Metrics that have no value until something happens: calls of a version in a gradual deployment, and our own ones of failures
 * and first attempts. All others have values while the stage is in use.
 */
const isSilentUntilNeeded = ({ Namespace, MetricName = "", Dimensions = [] }: MetricId): boolean =>
  Dimensions.some(({ Name }) => Name === "ExecutedVersion") ||
  (Namespace === METRICS_NAMESPACE && MetricName !== metrics.sweepLag.name);

/** Returns the names of the dimensions of a metric. */
const shapeOf = ({ Dimensions = [] }: MetricId): string =>
  Dimensions.map(({ Name }) => Name)
    .sort()
    .join();

/**
 * Compares the metrics of the alarms with those of CloudWatch. A metric is unknown if no metric with its name and the
 * names of its dimensions had a value: a function that was never called has none of its own.
 * https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_ListMetrics.html
 * @throws Error that names the unknown ones
 */
async function requireMetrics(alarms: Alarm[]): Promise<string> {
  const wanted = new Map(alarms.flatMap(metricsOf).map((each) => [keyOf(each), each]));
  const unknown: string[] = [];
  let silent = 0;
  const byName = Map.groupBy(wanted.values(), ({ Namespace, MetricName }) => `${Namespace} ${MetricName}`);
  for (const group of byName.values()) {
    const [{ Namespace = "", MetricName = "" }] = group as [MetricId];
    const listed: MetricId[] = [];
    for await (const { Metrics = [] } of paginateListMetrics({ client: cloudWatch }, { Namespace, MetricName })) {
      listed.push(...Metrics);
    }
    const keys = new Set(listed.map(keyOf));
    const shapes = new Set(listed.map(shapeOf));
    for (const each of group.filter((metric) => !keys.has(keyOf(metric)))) {
      silent += 1;
      if (shapes.has(shapeOf(each)) || isSilentUntilNeeded(each)) continue;
      const readers = alarms.filter((alarm) => metricsOf(alarm).some((metric) => keyOf(metric) === keyOf(each)));
      unknown.push(`${keyOf(each)} (${readers.map(({ AlarmName }) => AlarmName).join(", ")})`);
    }
  }
  const late = "no such metric had a value in two weeks (a new one is listed after up to 15 minutes)";
  assert(unknown.length === 0, `${late}: ${unknown.join("; ")}`);
  return `${wanted.size - silent} of ${wanted.size} had a value in two weeks, the others have one only after an error or a call`;
}

const THREE_HOURS_MS = 3 * 3600 * 1000;

/** Evaluates the expressions of alarms as CloudWatch does. @throws Error with what CloudWatch says against them */
async function requireValues(alarms: Alarm[]): Promise<string> {
  const withExpression = alarms.filter(({ Metrics }) => Metrics.some(({ Expression }) => Expression));
  const EndTime = new Date();
  const StartTime = new Date(EndTime.getTime() - THREE_HOURS_MS);
  const faults: string[] = [];
  for (const { AlarmName, Metrics } of withExpression) {
    try {
      const command = new GetMetricDataCommand({ MetricDataQueries: Metrics, StartTime, EndTime });
      const { MetricDataResults = [], Messages: general = [] } = await cloudWatch.send(command);
      for (const { StatusCode = "", Messages = [] } of MetricDataResults) {
        const said = [...general, ...Messages].map(({ Code, Value }) => `${Code}: ${Value}`);
        if (!/^(Complete|PartialData)$/.test(StatusCode)) said.push(StatusCode);
        faults.push(...said.map((text) => `${AlarmName}: ${text}`));
      }
    } catch (error) {
      if (!(error instanceof AwsError)) throw error;
      faults.push(`${AlarmName}: ${error.message}`);
    }
  }
  assert(faults.length === 0, faults.join("; "));
  return counted(withExpression.length, "expression");
}
