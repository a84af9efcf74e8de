import { Annotations } from "aws-cdk-lib";
import * as iam from "aws-cdk-lib/aws-iam";
import type * as sqs from "aws-cdk-lib/aws-sqs";
import { actionsForSending, allowProducerToEncrypt, type Producer } from "./kms-key.ts";
import type { Stage } from "./stage.ts";

/** A service of AWS that sends for its customers: the ARN names the rule or the topic, the principal is the service. */
type SendingService = "events" | "sns";

/** What the operator has to set on a rule or a topic, because its owner creates it. */
const neededSetting: Record<SendingService, string> = {
  events:
    'its target needs InputPath "$.detail". Without it every event arrives in an envelope and is a dead letter. ' +
    'It also needs MessageGroupId "$.detail.project_id". Without it a busy project delays the events of the others',
  sns:
    "its subscription needs raw message delivery. Without it every event arrives in an envelope and is a dead letter. " +
    "Its publishers need to send the project's id as MessageGroupId. Without it a busy project delays the events of the others",
};

/**
 * Allows the producers of a stage in the queue's policy. Other accounts, EventBridge rules and SNS topics need this;
 * for principals of this account their own IAM policy is enough. Warns at synthesis about what the stack cannot set.
 */
export function allowProducersToSend(queue: sqs.Queue, { eventProducers = [], kmsKey }: Stage): void {
  for (const arn of eventProducers) {
    const producer = producerOf(arn);
    const send = { actions: ["sqs:SendMessage"], resources: [queue.queueArn] };
    queue.addToResourcePolicy(new iam.PolicyStatement({ ...producer, ...send }));
    if (queue.encryptionMasterKey) allowProducerToEncrypt(queue.encryptionMasterKey, producer);
    warnAboutSetting(queue, arn);
    if (kmsKey !== undefined && kmsKey !== "create") warnAboutKeyPolicy(queue, arn, kmsKey);
  }
}

/** Returns undefined for a producer that is an IAM principal. */
function serviceOf(arn: string): SendingService | undefined {
  const [, , service] = arn.split(":");
  return service === "events" || service === "sns" ? service : undefined;
}

const accountOf = (arn: string) => arn.split(":")[4];

/**
 * Returns the principal of a producer. A rule or a topic sends as its service: the condition limits that to this one.
 */
function producerOf(arn: string): Producer {
  const service = serviceOf(arn);
  if (service === undefined) return { principals: [new iam.ArnPrincipal(arn)], conditions: {} };
  const principals = [new iam.ServicePrincipal(`${service}.amazonaws.com`)];
  return { principals, conditions: { ArnEquals: { "aws:SourceArn": arn } } };
}

function warnAboutSetting(queue: sqs.Queue, arn: string): void {
  const service = serviceOf(arn);
  if (service === undefined) return;
  Annotations.of(queue).addWarningV2(
    `producer-setting:${arn}`,
    `The event producer ${arn}: ${neededSetting[service]}.`,
  );
}

/** The stack cannot change the policy of a key that exists already. */
function warnAboutKeyPolicy(queue: sqs.Queue, arn: string, key: string): void {
  const service = serviceOf(arn);
  // In the account of the key an IAM policy is enough, if the key's policy trusts its account, as is usual.
  if (service === undefined && accountOf(arn) === accountOf(key)) return;
  const principal = service === undefined ? arn : `${service}.amazonaws.com with aws:SourceArn ${arn}`;
  Annotations.of(queue).addWarningV2(
    `producer-key-policy:${arn}`,
    `The policy of the key ${key} must allow ${principal}: ${actionsForSending.join(", ")}. Without it no event of this producer arrives.`,
  );
}
