import { App, Stack } from "aws-cdk-lib";
import { Template } from "aws-cdk-lib/assertions";
import { Code } from "aws-cdk-lib/aws-lambda";
import cdkJson from "../cdk.json" with { type: "json" };
import { functionRows } from "../functions/foundation/manifest/function-rows.ts";
import { type MetricRow, metrics } from "../functions/foundation/manifest/metrics.ts";
import { statusByCode } from "../functions/foundation/platform/errors.ts";
import { accessLog } from "../lib/access-log.ts";
import type { StageContext } from "../lib/service-function.ts";
import { ServiceStack } from "../lib/service-stack.ts";
import { stageNamed } from "../lib/stages.ts";
import texts from "./texts.json" with { type: "json" };

/* Counts the resources of the prod stack in its template, and reads how the priced functions are configured. */

/** Returns an access log line of the stage with values of realistic length. API Gateway writes unknown values as `-`. */
export function accessLogLine(values: Record<string, string>): string {
  const context = { stage: stageNamed("prod") } as StageContext;
  const template = String(accessLog(new Stack(), context).accessLogFormat.toString());
  const known: Record<string, string> = { ...texts.accessLog, ...values };
  return template.replaceAll(/\$context\.([\w.]+)/g, (_, name: string) => known[name] ?? "-");
}

/** The values of metric dimensions: outcomes of an attempt, and error codes with status 401. */
const VALUES = {
  outcome: texts.outcomes,
  reason: Object.values(statusByCode).filter((status) => status === 401),
  // Two during a gradual deployment.
  version: ["1"],
};

// biome-ignore lint/suspicious/noExplicitAny: a template is JSON
type Json = any;

/** The functions whose calls are priced. A new endpoint needs no entry here. */
const PRICED =
  /^(auth-authorizer|listProjects|deliveries-(fan-out|sweep|publish-notifications)|attempts-send(-slow)?)$/;

/**
 * Synthesizes the prod stack. Counts the resources of a stage that cost money even without traffic, and returns the configuration
 * of the functions whose calls are priced.
 */
export function countStage() {
  process.env.CDK_VALIDATION = "false";
  const stage = stageNamed("prod");
  const code = (file: string) => Code.fromInline(`// ${file}`);
  const stack = new ServiceStack(new App({ analyticsReporting: false, context: cdkJson.context }), "units", {
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
  const perMetric = Object.values<MetricRow>(metrics).map(({ dimensions = [] }) =>
    dimensions.reduce((sum, dimension) => sum + VALUES[dimension as keyof typeof VALUES].length, 1),
  );
  return {
    alarms: alarms.length,
    /** CloudWatch charges an alarm per metric that it reads. */
    alarmMetrics: alarms.reduce((sum, alarm) => sum + read(alarm), 0),
    dashboards: all("AWS::CloudWatch::Dashboard").length,
    secrets: all("AWS::SecretsManager::Secret").length,
    firewallRules: all("AWS::WAFv2::WebACL").flatMap(({ Rules }) => Rules).length,
    // The sweep and the worker for notifications write these each minute.
    idleMetrics: [metrics.sweepLag, metrics.redriven, metrics.notificationLag].length,
    /** All custom metrics that a stage may write. */
    allMetrics: perMetric.reduce((sum, count) => sum + count, all("AWS::Logs::MetricFilter").length),
    /** Pairs of a function and a table that it uses. */
    tableUses: functionRows.reduce((sum, { uses }) => sum + Object.keys(uses.tables ?? {}).length, 0),
    /** Functions that send to a queue or its dead-letter queue, counted per queue; the pipeline is one more. */
    queueProducers: functionRows.reduce(
      (sum, { uses }) => sum + (uses.sendsTo?.length ?? 0) + (uses.rejectsTo?.length ?? 0),
      1,
    ),
    memoryMb: Object.fromEntries<number>(
      functions.filter((each) => PRICED.test(fileOf(each))).map((each) => [fileOf(each), each.MemorySize]),
    ),
    /** The minimum level of the log lines that Lambda itself writes. */
    systemLogLevel: [...new Set(functions.map(({ LoggingConfig }) => LoggingConfig?.SystemLogLevel ?? "INFO"))].join(),
    /** Queues that Lambda polls. */
    pollers: all("AWS::Lambda::EventSourceMapping").length,
  };
}
