import { Duration } from "aws-cdk-lib";
import * as iam from "aws-cdk-lib/aws-iam";
import * as sqs from "aws-cdk-lib/aws-sqs";
import { Construct } from "constructs";
import {
  deadLetterMaxMessageBytes,
  deadLetterName,
  type QueueKey,
  type QueueRow,
  queues,
  retentionSeconds,
} from "../functions/manifest/queues.ts";
import { allowProducerToEncrypt, type KmsKey, type Producer } from "./kms-key.ts";
import { constructId, deployedName } from "./names.ts";
import { deletedOnlyByRollback } from "./removal-policy.ts";
import type { Stage } from "./stage.ts";

export type Queues = Record<QueueKey, { queue: sqs.Queue; deadLetters: sqs.Queue }>;

/** Creates one queue and its dead-letter queue per row of functions/manifest/queues.ts. */
export function createQueues(scope: Construct, stage: Stage, key?: KmsKey): Queues {
  const folder = new Construct(scope, "Queues");
  const pairs = Object.entries<QueueRow>(queues).map(([name, row]) => [
    name,
    createPair(folder, name, row, stage, key),
  ]);
  const created = Object.fromEntries(pairs) as Queues;
  allowProducersToSend(created.events.queue, stage.eventProducers ?? []);
  return created;
}

function createPair(
  scope: Construct,
  name: string,
  row: QueueRow,
  stage: Stage,
  key: KmsKey | undefined,
): Queues[QueueKey] {
  const shared: sqs.QueueProps = {
    ...(key
      ? { encryption: sqs.QueueEncryption.KMS, encryptionMasterKey: key, dataKeyReuse: DATA_KEY_REUSE }
      : { encryption: sqs.QueueEncryption.SQS_MANAGED }),
    enforceSSL: true,
    retentionPeriod: Duration.seconds(retentionSeconds),
    removalPolicy: deletedOnlyByRollback(stage),
  };
  const deadLetters = new sqs.Queue(scope, `${constructId(name)}DeadLetters`, {
    ...shared,
    queueName: deployedName(stage, deadLetterName(row)),
    maxMessageSizeBytes: deadLetterMaxMessageBytes,
  });
  const queue = new sqs.Queue(scope, constructId(name), {
    ...shared,
    queueName: deployedName(stage, row.name),
    visibilityTimeout: Duration.seconds(row.visibilitySeconds),
    maxMessageSizeBytes: row.maxMessageBytes,
    deadLetterQueue: { queue: deadLetters, maxReceiveCount: row.maxReceives },
  });
  return { queue, deadLetters };
}

/**
 * Time for which SQS reuses a data key before it calls KMS again. An hour costs a twelfth of the default, 5 minutes.
 */
const DATA_KEY_REUSE = Duration.hours(1);

/**
 * Allows the producers of a stage in the queue's policy. Other accounts, EventBridge rules and SNS topics need this;
 * for principals of this account their own IAM policy is enough.
 */
function allowProducersToSend(queue: sqs.Queue, arns: string[]): void {
  for (const arn of arns) {
    const producer = producerOf(arn);
    const send = { actions: ["sqs:SendMessage"], resources: [queue.queueArn] };
    queue.addToResourcePolicy(new iam.PolicyStatement({ ...producer, ...send }));
    if (queue.encryptionMasterKey) allowProducerToEncrypt(queue.encryptionMasterKey, producer);
  }
}

/**
 * Returns the principal of a producer. A rule or a topic sends as its service: the condition limits that to this one.
 */
function producerOf(arn: string): Producer {
  const service = /^arn:[\w-]+:(events|sns):/.exec(arn)?.[1];
  if (service === undefined) return { principals: [new iam.ArnPrincipal(arn)], conditions: {} };
  const principals = [new iam.ServicePrincipal(`${service}.amazonaws.com`)];
  return { principals, conditions: { ArnEquals: { "aws:SourceArn": arn } } };
}
