import { dev, only } from "./synthesized.ts";

test("the topic of notifications accepts nothing without TLS", () => {
  const name = "deployment-webhooks-dev-notifications";
  const topic = only(dev.all("AWS::SNS::Topic").filter(({ Properties }) => Properties.TopicName === name));
  const policies = dev.all("AWS::SNS::TopicPolicy").map(({ Properties }) => Properties);
  const { Statement } = only(policies.filter(({ Topics }) => Topics[0].Ref === topic.id)).PolicyDocument;
  expect(Statement).toMatchObject([
    { Effect: "Deny", Principal: "*", Action: "sns:Publish", Condition: { Bool: { "aws:SecureTransport": "false" } } },
  ]);
});
