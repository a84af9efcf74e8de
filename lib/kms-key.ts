import { Stack } from "aws-cdk-lib";
import * as iam from "aws-cdk-lib/aws-iam";
import * as kms from "aws-cdk-lib/aws-kms";
import type { Construct } from "constructs";
import { neverDeleted } from "./removal-policy.ts";
import type { Stage } from "./stage.ts";

/*
 * The customer managed KMS key of a stage. Each function needs permission to use it for what it reads and writes
 * (kms-grants.ts), and the key policy has to allow the AWS services that use it themselves.
 */

export type KmsKey = kms.IKey;

/**
 * Creates the key of a stage, or refers to an existing one.
 * @returns undefined when the stage has no `kmsKey` and uses keys managed by AWS
 */
export function createKmsKey(scope: Construct, stage: Stage): KmsKey | undefined {
  if (stage.kmsKey === undefined) return undefined;
  if (stage.kmsKey !== "create") return kms.Key.fromKeyArn(scope, "Key", stage.kmsKey);
  const key = new kms.Key(scope, "Key", {
    description: `Tables, queues, secret and logs of ${Stack.of(scope).stackName}`,
    enableKeyRotation: true,
    // A deleted key makes everything it encrypted unreadable after 30 days.
    removalPolicy: neverDeleted(stage),
  });
  key.addToResourcePolicy(logsStatement(Stack.of(scope)));
  return key;
}

/** https://docs.aws.amazon.com/AmazonCloudWatch/latest/logs/encrypt-log-data-kms.html */
function logsStatement({ partition, region, account }: Stack): iam.PolicyStatement {
  return new iam.PolicyStatement({
    principals: [new iam.ServicePrincipal(`logs.${region}.amazonaws.com`)],
    actions: ["Encrypt*", "Decrypt*", "ReEncrypt*", "GenerateDataKey*", "Describe*"].map((action) => `kms:${action}`),
    resources: ["*"],
    conditions: {
      ArnLike: { "kms:EncryptionContext:aws:logs:arn": `arn:${partition}:logs:${region}:${account}:log-group:*` },
    },
  });
}

/** https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-key-management.html */
export const actionsForSending = ["kms:GenerateDataKey", "kms:Decrypt"];

/**
 * Lets an event producer encrypt its messages. This has no effect on a key that exists already: the operator changes
 * the policy of that key.
 */
export function allowProducerToEncrypt(key: KmsKey, { principals, conditions }: Producer): void {
  key.addToResourcePolicy(
    new iam.PolicyStatement({ principals, conditions, actions: actionsForSending, resources: ["*"] }),
  );
}

export interface Producer {
  principals: iam.IPrincipal[];
  conditions: iam.Conditions;
}
