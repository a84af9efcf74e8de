import * as cloudwatch from "aws-cdk-lib/aws-cloudwatch";
import type { Construct } from "constructs";
import { constructId } from "../names.ts";

/**
 * - `page`: users notice, or will within the hour. Wakes the on-call engineer.
 * - `ticket`: can wait until the morning.
 */
type Severity = "page" | "ticket";

export interface AlarmRow {
  /** Part of the alarm's name, its drill (bin/drill/drills.ts), if it has one, and its section in docs/runbook.md unless `section` is set. */
  id: string;
  /** Section of docs/runbook.md; absent = the id. */
  section?: string;
  severity: Severity;
  /** One sentence: what the alarm means for users. It starts the alarm's description. */
  meaning: string;
  metric: cloudwatch.IMetric;
  /** Bad values of a period: from this value on, or below it. */
  when: { atLeast: number } | { below: number };
  /** Number of consecutive bad periods before the alarm fires; absent = 1. */
  periods?: number;
  /**
   * Missing data counts as bad. Absent = missing data counts as good, which also ends an alarm: most metrics count
   * events and have no data while none happen.
   */
  isMissingDataBad?: boolean;
}

/** Creates one alarm without actions. */
export function createAlarm(scope: Construct, alarmName: string, row: AlarmRow): cloudwatch.Alarm {
  const { id, section = id, meaning, metric, when, periods = 1, isMissingDataBad = false } = row;
  const { GREATER_THAN_OR_EQUAL_TO_THRESHOLD, LESS_THAN_THRESHOLD } = cloudwatch.ComparisonOperator;
  return new cloudwatch.Alarm(scope, constructId(id), {
    alarmName,
    alarmDescription: `${meaning} What to do: docs/runbook.md#${section}`,
    metric,
    ...("atLeast" in when
      ? { threshold: when.atLeast, comparisonOperator: GREATER_THAN_OR_EQUAL_TO_THRESHOLD }
      : { threshold: when.below, comparisonOperator: LESS_THAN_THRESHOLD }),
    evaluationPeriods: periods,
    treatMissingData: cloudwatch.TreatMissingData[isMissingDataBad ? "BREACHING" : "NOT_BREACHING"],
  });
}
