import { randomUUID } from "node:crypto";
import { App, Stack } from "aws-cdk-lib";
import { Template } from "aws-cdk-lib/assertions";
import { Code } from "aws-cdk-lib/aws-lambda";
import { type MetricRow, metrics } from "../functions/manifest/metrics.ts";
import { statusByCode } from "../functions/platform/errors.ts";
import { accessLog } from "../lib/access-log.ts";
import type { StageContext } from "../lib/service-function.ts";
import { ServiceStack } from "../lib/service-stack.ts";
import { stageNamed } from "../lib/stages.ts";

/* What the stack of prod has and how its functions are set up, counted in its template. */

/** What a stage has whether it is used or not, and how its functions are set up. */
export interface StageUnits {
  name: string;
  alarms: number;
  /** CloudWatch charges an alarm for each metric it reads. */
  alarmMetrics: number;
  dashboards: number;
  secrets: number;
  /** Custom metrics that every stage writes, and all that a stage in full use may write. */
  idleMetrics: number;
  allMetrics: number;
  memoryMb: Record<string, number>;
  /** Below which level Lambda's own log lines are left out. */
  systemLogLevel: string;
  pollers: { queue: string; batchSize: number; batchingWindowSeconds: number }[];
}

let accessLogTemplate: string | undefined;

/** The stage's own format, with values of the length that API Gateway writes; what it does not know it writes as `-`. */
export function accessLogLine(values: Record<string, string>): string {
  const surroundings = { stage: stageNamed("prod") } as StageContext;
  accessLogTemplate ??= String(accessLog(new Stack(), surroundings).accessLogFormat.toString());
  const known: Record<string, string> = {
    requestId: randomUUID(),
    requestTime: "21/Nov/2026:10:18:41 +0000",
    "identity.sourceIp": "203.0.113.127",
    responseLatency: "42",
    integrationLatency: "21",
    "authorizer.latency": "12",
    ...values,
  };
  return accessLogTemplate.replaceAll(/\$context\.([\w.]+)/g, (_, name: string) => known[name] ?? "-");
}

/** Attempts end in success or in one of as many errors as there are; credentials are refused for as many reasons as there are 401s. */
const VALUES = {
  outcome: ["succeeded", "timeout", "dns_error", "connection_refused", "connection_reset", "tls_error"].concat(
    "address_blocked",
    "invalid_response",
    "http_status",
  ),
  reason: Object.values(statusByCode).filter((status) => status === 401),
};

// biome-ignore lint/suspicious/noExplicitAny: a template is JSON
type Json = any;

export function countStage(): StageUnits {
  process.env.CDK_VALIDATION = "false";
  const stage = stageNamed("prod");
  const code = (file: string) => Code.fromInline(`// ${file}`);
  const stack = new ServiceStack(new App({ analyticsReporting: false }), "units", {
    stage,
    code,
    page: "packages/console/src",
  });
  const resources = Object.values<Json>(Template.fromStack(stack).toJSON().Resources);
  const all = (type: string): Json[] =>
    resources.filter(({ Type }) => Type === type).map(({ Properties }) => Properties);
  const functions = all("AWS::Lambda::Function").filter(({ Code }) => Code.ZipFile?.startsWith("// "));
  const fileOf = ({ Code }: Json): string => Code.ZipFile.slice("// ".length);
  const alarms = all("AWS::CloudWatch::Alarm");
  const read = ({ Metrics }: Json): number =>
    Metrics?.filter(({ MetricStat }: Json) => MetricStat !== undefined).length ?? 1;
  const perMetric = Object.values<MetricRow>(metrics).map(({ dimension }) =>
    dimension === undefined ? 1 : 1 + VALUES[dimension as keyof typeof VALUES].length,
  );
  return {
    name: stage.name,
    alarms: alarms.length,
    alarmMetrics: alarms.reduce((sum, alarm) => sum + read(alarm), 0),
    dashboards: all("AWS::CloudWatch::Dashboard").length,
    secrets: all("AWS::SecretsManager::Secret").length,
    // The sweep's own, which it writes each minute.
    idleMetrics: [metrics.sweepLag, metrics.redriven].length,
    allMetrics: perMetric.reduce((sum, count) => sum + count, 0),
    memoryMb: Object.fromEntries(functions.map((each) => [fileOf(each), each.MemorySize])),
    systemLogLevel: [...new Set(functions.map(({ LoggingConfig }) => LoggingConfig?.SystemLogLevel ?? "INFO"))].join(),
    pollers: all("AWS::Lambda::EventSourceMapping").map((mapping) => ({
      queue: String(mapping.EventSourceArn["Fn::GetAtt"][0])
        .replace(/^Queues|[0-9A-F]{8}$/g, "")
        .toLowerCase(),
      batchSize: mapping.BatchSize,
      batchingWindowSeconds: mapping.MaximumBatchingWindowInSeconds ?? 0,
    })),
  };
}
