import { dev, type Json, only, SynthesizedStack } from "./synthesized.ts";

const every = new SynthesizedStack("everyOption");
const acl = only(every.all("AWS::WAFv2::WebACL"));
const [rate, ...managed] = acl.Properties.Rules;

test("there is no firewall unless the stage has the option", () => {
  expect(dev.all("AWS::WAFv2::WebACL")).toEqual([]);
});

test("an IP address that sends more requests than the limit in five minutes is blocked", () => {
  expect(acl.Properties.DefaultAction).toEqual({ Allow: {} });
  expect(rate).toMatchObject({
    Priority: 0,
    Action: { Block: {} },
    Statement: { RateBasedStatement: { AggregateKeyType: "IP", Limit: 3_000, EvaluationWindowSec: 300 } },
  });
});

test("the managed rule groups of AWS only count requests", () => {
  expect(
    managed.map(({ Statement, OverrideAction }: Json) => [Statement.ManagedRuleGroupStatement.Name, OverrideAction]),
  ).toEqual([
    ["AWSManagedRulesCommonRuleSet", { Count: {} }],
    ["AWSManagedRulesKnownBadInputsRuleSet", { Count: {} }],
    ["AWSManagedRulesAmazonIpReputationList", { Count: {} }],
  ]);
  const priorities = acl.Properties.Rules.map(({ Priority }: Json) => Priority);
  expect(new Set(priorities).size).toBe(priorities.length);
});

test("the firewall is in front of the stage of the API", () => {
  const { WebACLArn, ResourceArn } = only(every.all("AWS::WAFv2::WebACLAssociation")).Properties;
  expect(every.target(WebACLArn).id).toBe(acl.id);
  expect(JSON.stringify(ResourceArn)).toContain(only(every.all("AWS::ApiGateway::Stage")).id);
});

test("no samples of requests are kept", () => {
  for (const { VisibilityConfig } of [acl.Properties, ...acl.Properties.Rules]) {
    expect(VisibilityConfig).toMatchObject({ SampledRequestsEnabled: false, CloudWatchMetricsEnabled: true });
  }
});
