import { Duration } from "aws-cdk-lib";
import * as cloudwatch from "aws-cdk-lib/aws-cloudwatch";
import { Construct } from "constructs";
import { constructId } from "./names.ts";
import type { Queues } from "./queues.ts";

/**
 * Alarms as soon as a dead letter queue holds a message. Receivers that fail are no reason (functions/deliveries retries
 * them): what lies there is a fault of ours or an event that nobody could read.
 */
export function alarmOnDeadLetters(scope: Construct, queues: Queues): void {
  const folder = new Construct(scope, "Alarms");
  for (const [key, { deadLetters }] of Object.entries(queues)) {
    const depth = deadLetters.metricApproximateNumberOfMessagesVisible({
      period: Duration.minutes(1),
      statistic: cloudwatch.Stats.MAXIMUM,
    });
    depth.createAlarm(folder, `${constructId(key)}DeadLetters`, {
      alarmDescription: `${deadLetters.queueName} holds messages that nobody could process. Mend the cause, then redrive them.`,
      comparisonOperator: cloudwatch.ComparisonOperator.GREATER_THAN_OR_EQUAL_TO_THRESHOLD,
      threshold: 1,
      evaluationPeriods: 1,
      treatMissingData: cloudwatch.TreatMissingData.NOT_BREACHING,
    });
  }
}
