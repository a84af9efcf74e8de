import { dev, only, SynthesizedStack } from "./synthesized.ts";

const topicOf = (stack: SynthesizedStack) =>
  only(stack.all("AWS::SNS::Topic").filter(({ Properties }) => Properties.TopicName !== undefined));

test("the topic of notifications is encrypted: with the AWS managed key, or with the key of the stage", () => {
  const withKey = new SynthesizedStack("prodWithKey");
  expect(topicOf(dev).Properties.KmsMasterKeyId).toBe("alias/aws/sns");
  expect(withKey.target(topicOf(withKey).Properties.KmsMasterKeyId).Type).toBe("AWS::KMS::Key");
});

test("the topic of notifications accepts nothing without TLS", () => {
  const policies = dev
    .all("AWS::SNS::TopicPolicy")
    .filter(({ Properties }) => Properties.Topics[0].Ref === topicOf(dev).id);
  expect(only(policies).Properties.PolicyDocument.Statement).toMatchObject([
    { Effect: "Deny", Principal: "*", Condition: { Bool: { "aws:SecureTransport": "false" } } },
  ]);
});
