import { SynthesizedStack } from "./synthesized.ts";

/* What the stack cannot set for a producer of events, it says at synthesis. */

const ownKey = new SynthesizedStack("everyOption").synthesis.warnings;
const existingKey = new SynthesizedStack("otherForms").synthesis.warnings;
const about = (warnings: string[], part: string) =>
  warnings.filter((text) => text.includes(part)).map((text) => text.replace(/ \[ack: .*$/s, ""));

const rule = "arn:aws:events:eu-west-1:111122223333:rule/deployments";
const topic = "arn:aws:sns:eu-west-1:111122223333:deployments";
const key = "arn:aws:kms:eu-west-1:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab";
const outside = "arn:aws:iam::444455556666:role/pipeline";
const needed = "kms:GenerateDataKey, kms:Decrypt. Without it no event of this producer arrives.";

test("an EventBridge rule must pass the detail of its events and their project, a topic the message as it is", () => {
  const envelope = "Without it every event arrives in an envelope and is a dead letter.";
  expect(about(ownKey, "The event producer")).toEqual([
    `The event producer ${rule}: its target needs InputPath "$.detail". ${envelope} It also needs MessageGroupId "$.detail.project_id". Without it a busy project delays the events of the others.`,
    `The event producer ${topic}: its subscription needs raw message delivery. ${envelope} Its publishers need to send the project's id as MessageGroupId. Without it a busy project delays the events of the others.`,
  ]);
});

test("the policy of an existing key must allow services and other accounts, and no IAM principal of its account", () => {
  expect(about(existingKey, "The policy of the key")).toEqual([
    `The policy of the key ${key} must allow ${outside}: ${needed}`,
    `The policy of the key ${key} must allow events.amazonaws.com with aws:SourceArn ${rule}: ${needed}`,
    `The policy of the key ${key} must allow sns.amazonaws.com with aws:SourceArn ${topic}: ${needed}`,
  ]);
});

test("a key of the stack allows its producers by itself", () => {
  expect(about(ownKey, "The policy of the key")).toEqual([]);
});
