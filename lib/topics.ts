import * as sns from "aws-cdk-lib/aws-sns";
import { Construct } from "constructs";
import { type TopicKey, type TopicRow, topics } from "../functions/foundation/manifest/topics.ts";
import type { KmsKey } from "./kms-key.ts";
import { constructId, deployedName } from "./names.ts";
import type { Stage } from "./stage.ts";

/** `key`: the customer managed key; absent = the AWS managed key, for which publishers need no permission. */
export type Topics = Record<TopicKey, { topic: sns.Topic; key?: KmsKey }>;

/**
 * Creates one topic per row of functions/foundation/manifest/topics.ts. Without a customer managed key, the AWS managed key of SNS
 * encrypts it, which every publisher of the account may use. The encryption leaves out subject and attributes.
 * https://docs.aws.amazon.com/sns/latest/dg/sns-server-side-encryption.html
 */
export function createTopics(scope: Construct, stage: Stage, key?: KmsKey): Topics {
  const folder = new Construct(scope, "Topics");
  const created = Object.entries<TopicRow>(topics).map(([name, row]) => {
    const topic = new sns.Topic(folder, constructId(name), {
      topicName: deployedName(stage, row.name),
      displayName: `Deployment webhooks, ${stage.name}`,
      enforceSSL: true,
      ...(key && { masterKey: key }),
    });
    if (!key) (topic.node.defaultChild as sns.CfnTopic).kmsMasterKeyId = "alias/aws/sns";
    return [name, { topic, ...(key && { key }) }];
  });
  return Object.fromEntries(created) as Topics;
}
