import { Duration, RemovalPolicy } from "aws-cdk-lib";
import * as sqs from "aws-cdk-lib/aws-sqs";
import { Construct } from "constructs";
import {
  deadLetterMaxMessageBytes,
  deadLetterName,
  type QueueKey,
  type QueueRow,
  queues,
  retentionSeconds,
} from "../functions/queues.ts";
import { constructId, deployedName } from "./names.ts";
import type { Stage } from "./stages.ts";

export type Queues = Record<QueueKey, { queue: sqs.Queue; deadLetters: sqs.Queue }>;

/** One queue, with its dead letter queue, per row of functions/queues.ts. */
export function createQueues(scope: Construct, stage: Stage): Queues {
  const folder = new Construct(scope, "Queues");
  const created = Object.entries<QueueRow>(queues).map(([key, row]) => [key, createPair(folder, key, row, stage)]);
  return Object.fromEntries(created) as Queues;
}

function createPair(scope: Construct, key: string, row: QueueRow, stage: Stage): Queues[QueueKey] {
  const shared: sqs.QueueProps = {
    encryption: sqs.QueueEncryption.SQS_MANAGED,
    enforceSSL: true,
    retentionPeriod: Duration.seconds(retentionSeconds),
    removalPolicy: stage.keepsData ? RemovalPolicy.RETAIN : RemovalPolicy.DESTROY,
  };
  const deadLetters = new sqs.Queue(scope, `${constructId(key)}DeadLetters`, {
    ...shared,
    queueName: deployedName(stage, deadLetterName(row)),
    maxMessageSizeBytes: deadLetterMaxMessageBytes,
  });
  const queue = new sqs.Queue(scope, constructId(key), {
    ...shared,
    queueName: deployedName(stage, row.name),
    visibilityTimeout: Duration.seconds(row.visibilitySeconds),
    maxMessageSizeBytes: row.maxMessageBytes,
    deadLetterQueue: { queue: deadLetters, maxReceiveCount: row.maxReceives },
  });
  return { queue, deadLetters };
}
