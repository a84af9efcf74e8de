import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { GetStageCommand, type PatchOperation, type Stage, UpdateStageCommand } from "@aws-sdk/client-api-gateway";
import { GetQueryResultsCommand, StartQueryCommand } from "@aws-sdk/client-cloudwatch-logs";
import { GetAliasCommand, GetEventSourceMappingCommand, paginateListVersionsByFunction } from "@aws-sdk/client-lambda";
import { GetServiceQuotaCommand } from "@aws-sdk/client-service-quotas";
import { METRICS_NAMESPACE, type MetricKey, metrics } from "../../functions/foundation/manifest/metrics.ts";
import { AwsError, apiGateway, cloudWatchLogs, lambda, serviceQuotas } from "./aws/clients.ts";
import {
  type Alarm,
  getMetricData,
  keyOf,
  listMetrics,
  type MetricId,
  metricsOf,
  readAlarms,
  type StageAccount,
} from "./aws/cloudwatch.ts";
import { nameOf, namesOf, readStack, type StageStack } from "./aws/stack.ts";
import {
  assert,
  type CheckContext,
  CheckFailed,
  type CheckGroup,
  CheckSkipped,
  CheckWarning,
  pause,
  requireResource,
} from "./check.ts";
import { expectError } from "./gateway-checks.ts";
import { type RunbookQuery, runbookQueries } from "./runbook-queries.ts";

/* `--operator`: what only an operator of the AWS account sees. All calls read, except the closed endpoint's. */

const requireAccount = ({ account }: CheckContext): StageAccount =>
  requireResource(account, "the stack of the stage could not be read");

const count = (number: number, one: string, many = `${one}s`): string => `${number} ${number === 1 ? one : many}`;

export const access: CheckGroup = {
  title: "AWS account",
  sections: ["Set up your shell"],
  checks: [
    {
      claim: "the stack of the stage can be read with the credentials of the environment",
      async run(context) {
        const stack = await readStack(context.options.operator?.stage ?? "");
        const alarms = await readAlarms(stack);
        const defined = namesOf(stack, "AWS::CloudWatch::Alarm").length;
        assert(
          alarms.length === defined,
          `${alarms.length} of ${defined} alarms of ${stack.name} exist in this region: check AWS_REGION`,
        );
        context.account = { stack, alarms };
        return `${count(stack.resources.length, "resource")}, ${count(alarms.length, "alarm")}`;
      },
    },
  ],
};

/** The endpoint that the check of the throttle closes: rarely called, and with a random id it changes nothing. */
const CLOSED = { method: "POST", path: "/v1/projects/{project_id}/webhooks/{webhook_id}/recover" };

/** https://docs.aws.amazon.com/apigateway/latest/api/patch-operations.html */
const closedKey = `${CLOSED.path.replaceAll("/", "~1")}/${CLOSED.method}`;

/** Reads or changes the settings of the deployed stage, as docs/runbook/set-throttle.sh does for all endpoints. */
async function apiStage({ stack }: StageAccount, patchOperations?: PatchOperation[]): Promise<Stage> {
  const restApiId = nameOf(stack, "AWS::ApiGateway::RestApi", "Api");
  assert(restApiId !== undefined, `${stack.name} has no API`);
  const input = { restApiId, stageName: stack.stage };
  if (patchOperations) return apiGateway.send(new UpdateStageCommand({ ...input, patchOperations }));
  return apiGateway.send(new GetStageCommand(input));
}

const limitsOf = (rate: number, burst: number): PatchOperation[] => [
  { op: "replace", path: `/${closedKey}/throttling/rateLimit`, value: String(rate) },
  { op: "replace", path: `/${closedKey}/throttling/burstLimit`, value: String(burst) },
];

export const closedEndpoint: CheckGroup = {
  title: "Throttle",
  sections: ["A noisy tenant", "Raise quotas"],
  checks: [
    {
      claim: "a closed endpoint returns 429 with Retry-After, and responds again after it",
      async run(context) {
        const account = requireAccount(context);
        const { throttlingRateLimit: rate, throttlingBurstLimit: burst } =
          (await apiStage(account)).methodSettings?.[closedKey] ?? {};
        const isSet = rate !== undefined && burst !== undefined;
        try {
          await apiStage(account, limitsOf(0, 0));
          expectError(await askUntil(context, (status) => status === 429, "a closed endpoint"), "rate_limited");
        } finally {
          await apiStage(account, isSet ? limitsOf(rate, burst) : [{ op: "remove", path: `/${closedKey}` }]);
        }
        await askUntil(context, (status) => status !== 429, "the endpoint after it was opened again");
        return `${CLOSED.method} ${CLOSED.path}`;
      },
    },
  ],
};

/** Calls the closed endpoint until its status is the expected one: a change of the stage takes some seconds. */
async function askUntil(context: CheckContext, isExpected: (status: number) => boolean, subject: string) {
  const path = CLOSED.path.replaceAll(/\{\w+\}/g, () => randomUUID());
  const giveUpAt = Date.now() + context.limits.changeMs;
  for (;;) {
    const response = await context.ask(CLOSED.method, path, { token: context.options.token, body: "{}" });
    if (isExpected(response.status)) return response;
    if (Date.now() > giveUpAt) {
      throw new CheckFailed(`${CLOSED.method} ${CLOSED.path}: ${subject} still returns ${response.status}`);
    }
    await pause(context.limits.pollMs, context.stop);
  }
}

export const monitoring: CheckGroup = {
  title: "Metrics and alarms",
  sections: ["The first five minutes"],
  checks: [
    {
      claim: "the metrics of this run arrive",
      async run(context) {
        const { stack } = requireAccount(context);
        const expected = expectedMetrics(context);
        const giveUpAt = Date.now() + context.limits.metricsMs;
        for (;;) {
          const missing = await missingMetrics(stack.stage, expected, new Date(context.startedAt.getTime() - 60_000));
          if (missing.length === 0) return expected.map(({ key, atLeast }) => `${key} ≥ ${atLeast}`).join(", ");
          if (Date.now() > giveUpAt) {
            throw new CheckFailed(
              `${missing.join("; ")}: CloudWatch extracts these metrics from the logs of the functions (${METRICS_NAMESPACE}, stage=${stack.stage})`,
            );
          }
          await pause(context.limits.pollMs, context.stop);
        }
      },
    },
    {
      claim: "every metric that an alarm reads exists",
      async run(context) {
        const { alarms } = requireAccount(context);
        const { unknown, silent } = await findMissing(alarms);
        // https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_ListMetrics.html
        assert(
          unknown.length === 0,
          `no such metric had a value in two weeks (a new one is listed after up to 15 minutes): ${unknown.join("; ")}`,
        );
        const all = new Set(alarms.flatMap(metricsOf).map(keyOf)).size;
        return `${all - silent} of ${all} had a value in two weeks, the others have one only after an error or a call`;
      },
    },
    {
      claim: "every alarm's expression can be evaluated",
      async run(context) {
        const { alarms } = requireAccount(context);
        const withExpression = alarms.filter(({ Metrics }) => Metrics.some(({ Expression }) => Expression));
        const faults: string[] = [];
        for (const alarm of withExpression) faults.push(...(await faultsOf(alarm)));
        assert(faults.length === 0, faults.join("; "));
        return count(withExpression.length, "expression");
      },
    },
    {
      claim: "concurrency-high compares with the usage metric of the quota",
      async run(context) {
        const { alarms } = requireAccount(context);
        const alarm = alarms.find(({ AlarmName }) => AlarmName.endsWith("-concurrency-high"));
        if (!alarm) throw new CheckSkipped("the stage has no such alarm (`alarms: false`)", { isExcused: true });
        const watched = quotaMetricOf(alarm);
        assert(watched !== undefined, "concurrency-high has no expression with SERVICE_QUOTA()");
        const input = { ServiceCode: "lambda", QuotaCode: "L-B99A9384" };
        const { Quota } = await serviceQuotas.send(new GetServiceQuotaCommand(input));
        const { MetricNamespace: Namespace, MetricName, MetricDimensions } = Quota?.UsageMetric ?? {};
        if (MetricName === undefined) {
          throw new CheckWarning(
            "Service Quotas names no usage metric of L-B99A9384: SERVICE_QUOTA() may have no value",
          );
        }
        const Dimensions = Object.entries(MetricDimensions ?? {}).map(([Name, Value]) => ({ Name, Value }));
        const usage = keyOf({ Namespace, MetricName, Dimensions });
        assert(usage === keyOf(watched), `the quota's usage metric is ${usage}, the alarm reads ${keyOf(watched)}`);
        return `${usage}, quota ${Quota?.Value}`;
      },
    },
  ],
};

/** Returns the metric in `SERVICE_QUOTA(…)` of the alarm concurrency-high. */
function quotaMetricOf({ Metrics }: Alarm): MetricId | undefined {
  const [, id] =
    Metrics.flatMap(({ Expression = "" }) => [/SERVICE_QUOTA\((\w+)\)/.exec(Expression) ?? []]).find(
      ({ length }) => length > 0,
    ) ?? [];
  return Metrics.find(({ Id }) => Id === id)?.MetricStat?.Metric;
}

interface ExpectedMetric {
  key: MetricKey;
  statistic: "Sum" | "SampleCount";
  atLeast: number;
}

/** Returns the metrics that this run caused: rejected credentials and test deliveries, and the sweep of every minute. */
function expectedMetrics({ count: { rejected, tests } }: CheckContext): ExpectedMetric[] {
  return [
    { key: "rejectedCredentials", statistic: "Sum", atLeast: rejected },
    { key: "sweepLag", statistic: "SampleCount", atLeast: 1 },
    ...(tests > 0 ? [{ key: "attempts", statistic: "Sum", atLeast: tests } as const] : []),
  ];
}

async function missingMetrics(stage: string, expected: ExpectedMetric[], from: Date): Promise<string[]> {
  const queries = expected.map(({ key, statistic }) => ({
    Id: key,
    MetricStat: {
      Metric: {
        Namespace: METRICS_NAMESPACE,
        MetricName: metrics[key].name,
        Dimensions: [{ Name: "stage", Value: stage }],
      },
      Period: 60,
      Stat: statistic,
    },
  }));
  const results = await getMetricData(queries, from, new Date(Date.now() + 60_000));
  return expected.flatMap(({ key, atLeast }) => {
    const sum = (results.find(({ id }) => id === key)?.values ?? []).reduce((total, value) => total + value, 0);
    return sum >= atLeast ? [] : [`expected ${metrics[key].name} ≥ ${atLeast}, got ${sum}`];
  });
}

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
 */
async function findMissing(alarms: Alarm[]): Promise<{ unknown: string[]; silent: number }> {
  const wanted = new Map(alarms.flatMap(metricsOf).map((each) => [keyOf(each), each]));
  const unknown: string[] = [];
  let silent = 0;
  for (const group of Map.groupBy(
    wanted.values(),
    ({ Namespace, MetricName }) => `${Namespace} ${MetricName}`,
  ).values()) {
    const [{ Namespace = "", MetricName = "" }] = group as [MetricId];
    const listed = await listMetrics(Namespace, MetricName);
    const keys = new Set(listed.map(keyOf));
    const shapes = new Set(listed.map(shapeOf));
    for (const each of group.filter((metric) => !keys.has(keyOf(metric)))) {
      silent += 1;
      if (shapes.has(shapeOf(each)) || isSilentUntilNeeded(each)) continue;
      const readers = alarms.filter((alarm) => metricsOf(alarm).some((metric) => keyOf(metric) === keyOf(each)));
      unknown.push(`${keyOf(each)} (${readers.map(({ AlarmName }) => AlarmName).join(", ")})`);
    }
  }
  return { unknown, silent };
}

const THREE_HOURS_MS = 3 * 3600 * 1000;

/** Evaluates the queries of an alarm as CloudWatch does, and returns what CloudWatch says against them. */
async function faultsOf({ AlarmName, Metrics }: Alarm): Promise<string[]> {
  const now = new Date();
  try {
    const results = await getMetricData(Metrics, new Date(now.getTime() - THREE_HOURS_MS), now);
    return results.flatMap(({ status, messages }) => {
      const said = [...messages, ...(/^(Complete|PartialData)$/.test(status ?? "") ? [] : [status])];
      return said.map((text) => `${AlarmName}: ${text}`);
    });
  } catch (error) {
    if (error instanceof AwsError) return [`${AlarmName}: ${error.message}`];
    throw error;
  }
}

export const versions: CheckGroup = {
  title: "Versions",
  sections: ["Roll back a deployment", "rolled-back"],
  checks: [
    {
      claim: "every alias has the newest version, without a gradual deployment in progress",
      async run(context) {
        const { stack } = requireAccount(context);
        const aliases = namesOf(stack, "AWS::Lambda::Alias");
        if (aliases.length === 0) throw new CheckSkipped("the stage does not deploy gradually", { isExcused: true });
        const faults: string[] = [];
        for (const arn of aliases) faults.push(...(await faultsOfAlias(arn)));
        assert(faults.length === 0, faults.join("; "));
        return count(aliases.length, "alias", "aliases");
      },
    },
    {
      claim: "every queue's mapping is enabled, and follows the alias if its function has one",
      async run(context) {
        const { stack } = requireAccount(context);
        const mappings = namesOf(stack, "AWS::Lambda::EventSourceMapping");
        assert(mappings.length > 0, `${stack.name} has no event source mapping`);
        const aliased = new Set(namesOf(stack, "AWS::Lambda::Alias").map((arn) => partsOf(arn).name));
        const faults: string[] = [];
        for (const uuid of mappings) {
          const { FunctionArn, State } = await lambda.send(new GetEventSourceMappingCommand({ UUID: uuid }));
          const { name, qualifier } = partsOf(FunctionArn);
          if (State !== "Enabled") faults.push(`the mapping of ${name} is ${State}`);
          if (aliased.has(name) && qualifier !== "live") {
            faults.push(`the mapping of ${name} calls ${qualifier ?? "$LATEST"}, expected the alias live`);
          }
        }
        assert(faults.length === 0, faults.join("; "));
        return count(mappings.length, "mapping");
      },
    },
  ],
};

/** `arn:aws:lambda:<region>:<account>:function:<name>[:<qualifier>]` */
function partsOf(arn = ""): { name: string; qualifier: string | undefined } {
  const [, , , , , , name = "", qualifier] = arn.split(":");
  return { name, qualifier };
}

async function faultsOfAlias(arn: string): Promise<string[]> {
  const { name, qualifier } = partsOf(arn);
  const command = new GetAliasCommand({ FunctionName: name, Name: qualifier });
  const { FunctionVersion, RoutingConfig } = await lambda.send(command);
  const newest = await newestVersion(name);
  const weights = Object.entries(RoutingConfig?.AdditionalVersionWeights ?? {});
  return [
    ...(FunctionVersion === newest ? [] : [`${name}: live is version ${FunctionVersion}, the newest one is ${newest}`]),
    ...weights.map(
      ([version, weight]) => `${name}: version ${version} gets ${Math.round(100 * weight)} % of the calls`,
    ),
  ];
}

async function newestVersion(FunctionName: string): Promise<string> {
  let newest = 0;
  for await (const { Versions = [] } of paginateListVersionsByFunction({ client: lambda }, { FunctionName })) {
    for (const { Version = "" } of Versions) newest = Math.max(newest, Number.parseInt(Version, 10) || 0);
  }
  return String(newest);
}

/** A longer span would cost more, and the question is only whether the query runs. */
const MAX_QUERY_MINUTES = 60;
const QUERIES_AT_ONCE = 5;

const runbookFile = join(import.meta.dirname, "../../docs/runbook.md");

export const logQueries: CheckGroup = {
  title: "Log queries",
  sections: ["Set up your shell"],
  checks: [
    {
      claim: "the log queries of the runbook run",
      async run(context) {
        const { stack } = requireAccount(context);
        const queries = runbookQueries(readFileSync(runbookFile, "utf8"));
        const faults: string[] = [];
        const waiting = [...queries];
        const worker = async () => {
          for (let next = waiting.shift(); next; next = waiting.shift())
            faults.push(...(await runQuery(next, stack, context)));
        };
        await Promise.all(Array.from({ length: QUERIES_AT_ONCE }, worker));
        assert(faults.length === 0, faults.join("; "));
        return count(queries.length, "query", "queries");
      },
    },
  ],
};

async function runQuery(
  { logs, minutes, query }: RunbookQuery,
  stack: StageStack,
  { limits, stop }: CheckContext,
): Promise<string[]> {
  const group = nameOf(stack, "AWS::Logs::LogGroup", logs);
  if (group === undefined) return [`${stack.name} has no log group ${logs}`];
  const now = Math.floor(Date.now() / 1000);
  const startTime = now - 60 * Math.min(minutes, MAX_QUERY_MINUTES);
  const input = { logGroupName: group, startTime, endTime: now, queryString: query };
  try {
    const { queryId } = await cloudWatchLogs.send(new StartQueryCommand(input));
    const giveUpAt = Date.now() + limits.changeMs;
    for (;;) {
      const { status = "" } = await cloudWatchLogs.send(new GetQueryResultsCommand({ queryId }));
      if (status === "Complete") return [];
      if (!/^(Scheduled|Running)$/.test(status)) return [`${logs}: ${query}: ${status}`];
      if (Date.now() > giveUpAt) return [`${logs}: ${query}: still ${status}`];
      await pause(Math.min(limits.pollMs, 1_000), stop);
    }
  } catch (error) {
    if (error instanceof AwsError) return [`${logs}: ${query}: ${error.message}`];
    throw error;
  }
}
