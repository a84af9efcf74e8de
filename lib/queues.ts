import { Duration } from "aws-cdk-lib";
import * as sqs from "aws-cdk-lib/aws-sqs";
import { Construct } from "constructs";
import {
  deadLetterMaxMessageBytes,
  deadLetterName,
  type QueueKey,
  type QueueRow,
  queues,
  retentionSeconds,
} from "../functions/foundation/manifest/queues.ts";
import { allowProducersToSend } from "./event-producers.ts";
import type { KmsKey } from "./kms-key.ts";
import { constructId, deployedName } from "./names.ts";
import { deletedOnlyByRollback } from "./removal-policy.ts";
import type { Stage } from "./stage.ts";

export type Queues = Record<QueueKey, { queue: sqs.Queue; deadLetters: sqs.Queue }>;

/** Creates one queue and its dead-letter queue per row of functions/foundation/manifest/queues.ts. */
export function createQueues(scope: Construct, stage: Stage, key?: KmsKey): Queues {
  const folder = new Construct(scope, "Queues");
  const pairs = Object.entries<QueueRow>(queues).map(([name, row]) => [
    name,
    createPair(folder, name, row, stage, key),
  ]);
  const created = Object.fromEntries(pairs) as Queues;
  allowProducersToSend(created.events.queue, stage);
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
