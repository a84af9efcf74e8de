import { Stack } from "aws-cdk-lib";
import type * as cloudwatch from "aws-cdk-lib/aws-cloudwatch";
import type * as lambda from "aws-cdk-lib/aws-lambda";
import { Construct } from "constructs";
import type { Stage } from "../stage.ts";
import { type AlarmRow, createAlarm } from "./alarm.ts";
import { MINUTE, math, ownMetric, SUM } from "./metrics.ts";

/** A function whose new versions are deployed gradually. */
export interface GraduallyDeployedFunction {
  /** Path below `functions/`. */
  id: string;
  alias: lambda.IAlias;
  stage: Pick<Stage, "name">;
}

/**
 * Creates the alarms that end a gradual deployment of a function and roll it back. They notify no topic.
 *
 * The metrics of the alias count both versions: a new version that always fails appears as a tenth of the calls. Errors
 * of Lambda do not include rejected credentials and failed messages, so those have their own alarms.
 */
export function createRollbackAlarms(scope: Construct, fn: GraduallyDeployedFunction): cloudwatch.Alarm[] {
  const folder = new Construct(scope, "RollbackAlarms");
  const prefix = `${Stack.of(scope).stackName}-rollback-${fn.id}`;
  return rollbackRows(fn).map((row) =>
    createAlarm(folder, `${prefix}-${row.id}`, { ...row, section: "rolled-back", severity: "page" }),
  );
}

function rollbackRows({ id, alias, stage }: GraduallyDeployedFunction): Omit<AlarmRow, "section" | "severity">[] {
  const calls = alias.metricInvocations({ statistic: SUM });
  const errors = {
    id: "errors",
    meaning: `The new version of ${id} fails and is rolled back.`,
    metric: math("IF(errors >= 3, 100 * errors / calls, 0)", MINUTE, {
      errors: alias.metricErrors({ statistic: SUM }),
      calls,
    }),
    when: { atLeast: 1 },
  };
  if (id !== "auth-authorizer") {
    return [
      errors,
      {
        id: "messages-failing",
        meaning: `The new version of ${id} fails to process messages and is rolled back.`,
        metric: ownMetric(stage, "messagesFailed", { statistic: SUM, period: MINUTE }),
        when: { atLeast: 3 },
      },
    ];
  }
  const { version } = alias.version;
  // The valid credentials that the new version would have accepted, with the share that both versions accept.
  const expected = "newCalls * (calls - rejected) / calls";
  return [
    errors,
    {
      // Only for the authorizer: the duration of a sender depends on the receivers. Cold starts are not in Duration.
      id: "slow",
      meaning: `The new version of ${id} delays every request and is rolled back.`,
      metric: math("IF(calls >= 100, duration, 0)", MINUTE, {
        calls,
        duration: alias.metricDuration({ statistic: "p95" }),
      }),
      when: { atLeast: 1_000 },
    },
    {
      // Lambda chooses the version of a call at random, so invalid credentials of strangers lower both shares alike. Of fewer
      // than 15 expected calls, chance alone may take three quarters.
      // https://docs.aws.amazon.com/lambda/latest/dg/monitoring-metrics-types.html
      id: "rejecting",
      meaning: `The new version of ${id} rejects valid credentials and is rolled back.`,
      metric: math(`IF(${expected} >= 15, 100 - 100 * (newCalls - newRejected) / (${expected}), 0)`, MINUTE, {
        calls,
        rejected: ownMetric(stage, "rejectedCredentials", { statistic: SUM, period: MINUTE }),
        newCalls: calls.with({ dimensionsMap: { ...calls.dimensions, ExecutedVersion: version } }),
        newRejected: ownMetric(stage, "rejectedCredentials", {
          statistic: SUM,
          period: MINUTE,
          dimensions: { version },
        }),
      }),
      when: { atLeast: 75 },
    },
  ];
}
