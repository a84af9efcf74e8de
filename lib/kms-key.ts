import { RemovalPolicy, Stack } from "aws-cdk-lib";
import * as iam from "aws-cdk-lib/aws-iam";
import * as kms from "aws-cdk-lib/aws-kms";
import type { Construct } from "constructs";
import type { Stage } from "./stage.ts";

/*
 * The customer's own KMS key. AWS keys ask nothing of the functions; with a customer's key, each needs the right to use it
 * for what it reads and writes (key-grants.ts), and the key's policy has to let the services in that use it by themselves.
 */

export type KmsKey = kms.IKey;

/** @returns undefined when the stage is content with AWS's keys */
export function createKmsKey(scope: Construct, stage: Stage): KmsKey | undefined {
  if (stage.kmsKey === undefined) return undefined;
  if (stage.kmsKey !== "create") return kms.Key.fromKeyArn(scope, "Key", stage.kmsKey);
  const key = new kms.Key(scope, "Key", {
    description: `Tables, queues, secret and logs of ${Stack.of(scope).stackName}`,
    enableKeyRotation: true,
    // A deleted key takes all it encrypted with it, thirty days later.
    removalPolicy: stage.keepsData ? RemovalPolicy.RETAIN : RemovalPolicy.DESTROY,
  });
  key.addToResourcePolicy(allowLogsToUseKey(Stack.of(scope)));
  return key;
}

/** https://docs.aws.amazon.com/AmazonCloudWatch/latest/logs/encrypt-log-data-kms.html */
function allowLogsToUseKey({ partition, region, account }: Stack): iam.PolicyStatement {
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

/** Lets one who sends events encrypt them. A key of the operator's has a policy of its own, which the README tells. */
export function allowProducerToEncrypt(key: KmsKey, { principals, conditions }: Producer): void {
  key.addToResourcePolicy(
    new iam.PolicyStatement({ principals, conditions, actions: actionsForSending, resources: ["*"] }),
  );
}

export interface Producer {
  principals: iam.IPrincipal[];
  conditions: iam.Conditions;
}
