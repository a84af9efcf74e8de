import { endpointRows } from "../../functions/foundation/manifest/function-rows.ts";
import { dev, type Json, only, SynthesizedStack } from "./synthesized.ts";

const prod = new SynthesizedStack("prod");
const every = new SynthesizedStack("everyOption");
const acl = only(prod.all("AWS::WAFv2::WebACL"));
const rules: Json[] = acl.Properties.Rules;
const [perAddress, perCredential, throttled, throttledAddress] = rules;

const limitsOf = (stack: SynthesizedStack) =>
  only(stack.all("AWS::WAFv2::WebACL")).Properties.Rules.map(({ Name, Statement }: Json) => [
    Name,
    Statement.RateBasedStatement.Limit,
  ]);

test("a stage whose data is deleted with it has no firewall", () => {
  expect(dev.all("AWS::WAFv2::WebACL")).toEqual([]);
  expect(dev.all("AWS::WAFv2::WebACLAssociation")).toEqual([]);
});

test("the limits are those of the stage, and 120 for the endpoints with a throttle of their own", () => {
  expect(limitsOf(prod)).toEqual([
    ["Rate", 6_000],
    ["CredentialRate", 3_000],
    ["ThrottledRate", 120],
    ["ThrottledAddressRate", 120],
  ]);
  expect(limitsOf(every)).toEqual([
    ["Rate", 1_200],
    ["CredentialRate", 600],
    ["ThrottledRate", 120],
    ["ThrottledAddressRate", 120],
  ]);
});

test("an IP address is blocked above its limit in a minute, whatever it sends", () => {
  expect(acl.Properties.DefaultAction).toEqual({ Allow: {} });
  expect(perAddress.Statement).toEqual({
    RateBasedStatement: { AggregateKeyType: "IP", Limit: 6_000, EvaluationWindowSec: 60 },
  });
});

const hasCredential = {
  SizeConstraintStatement: {
    FieldToMatch: { SingleHeader: { Name: "authorization" } },
    ComparisonOperator: "GT",
    Size: 0,
    TextTransformations: [{ Priority: 0, Type: "NONE" }],
  },
};

test.each([
  ["a credential", () => perCredential],
  ["a credential of an endpoint with a throttle", () => throttled],
])("%s is the same one in another case and with more spaces", (_, rule) => {
  const { AggregateKeyType, CustomKeys, EvaluationWindowSec } = rule().Statement.RateBasedStatement;
  expect({ AggregateKeyType, EvaluationWindowSec }).toEqual({
    AggregateKeyType: "CUSTOM_KEYS",
    EvaluationWindowSec: 60,
  });
  const { Name, TextTransformations } = only<Json>(CustomKeys).Header;
  expect(Name).toBe("authorization");
  expect(TextTransformations).toEqual([
    { Priority: 0, Type: "COMPRESS_WHITE_SPACE" },
    { Priority: 1, Type: "LOWERCASE" },
  ]);
});

test("only requests with a credential count for it", () => {
  expect(perCredential.Statement.RateBasedStatement.ScopeDownStatement).toEqual(hasCredential);
});

test("an IP address is blocked above the limit of the endpoints with a throttle, also with a new credential each time", () => {
  const { ScopeDownStatement, ...rate } = throttledAddress.Statement.RateBasedStatement;
  expect(rate).toEqual({ AggregateKeyType: "IP", Limit: 120, EvaluationWindowSec: 60 });
  const [credential, path] = throttled.Statement.RateBasedStatement.ScopeDownStatement.AndStatement.Statements;
  expect(credential).toEqual(hasCredential);
  expect(ScopeDownStatement).toEqual(path);
});

test("the limit of the endpoints with a throttle is lower than each of their throttles in a minute", () => {
  const rates = endpointRows.flatMap(({ throttle }) => (throttle ? [throttle.requestsPerSecond] : []));
  expect(rates).toHaveLength(5);
  for (const rate of rates) expect(throttledAddress.Statement.RateBasedStatement.Limit).toBeLessThan(60 * rate);
});

const throttledPath: Json = throttledAddress.Statement.RateBasedStatement.ScopeDownStatement.RegexMatchStatement;

test.each([
  ["/prod/v1/projects/1/webhooks/2/test", true],
  ["/prod/v1/projects/1/webhooks/2/certify", true],
  ["/prod/v1/projects/1/webhooks/2/deliveries/3/redeliver", true],
  ["/v1/projects/1/webhooks/2/recover", true],
  ["/v1/projects/1/webhooks/2/recover/", true],
  ["/v1/credentials/revoke", true],
  ["/v1/projects/1/service-accounts/2", true],
  ["/v1/projects/1/service-accounts/2/", true],
  ["/v1/projects/1/service-accounts", false],
  ["/v1/projects/1/service-accounts/2/api-keys", false],
  ["/v1/projects/1/service-accounts/2/api-keys/3", false],
  ["/v1/projects/1/webhooks/2", false],
  ["/v1/projects/1/webhooks/2/recovered", false],
  ["/v1/projects/1/webhooks/unrecover", false],
])("%s is the path of an endpoint with a throttle or without a credential: %s", (path, isThrottled) => {
  expect(throttledPath.FieldToMatch).toEqual({ UriPath: {} });
  expect(new RegExp(throttledPath.RegexString).test(path)).toBe(isThrottled);
});

test("the path of an endpoint with a throttle is decoded and resolved before it is compared", () => {
  expect(throttledPath.TextTransformations).toEqual([
    { Priority: 0, Type: "URL_DECODE" },
    { Priority: 1, Type: "NORMALIZE_PATH" },
  ]);
});

test("a blocked request gets the gateway response: a custom response would take precedence, without a request id", () => {
  for (const { Action } of [perAddress, perCredential, throttled, throttledAddress])
    expect(Action).toEqual({ Block: {} });
});

test("the rules have different priorities", () => {
  expect(rules.map(({ Priority }) => Priority)).toEqual([0, 1, 2, 3]);
});

test("the firewall is in front of the stage of the API", () => {
  const { WebACLArn, ResourceArn } = only(prod.all("AWS::WAFv2::WebACLAssociation")).Properties;
  expect(prod.target(WebACLArn).id).toBe(acl.id);
  expect(JSON.stringify(ResourceArn)).toContain(only(prod.all("AWS::ApiGateway::Stage")).id);
});

test("no samples of requests are kept", () => {
  for (const { VisibilityConfig } of [acl.Properties, ...rules]) {
    expect(VisibilityConfig).toMatchObject({ SampledRequestsEnabled: false, CloudWatchMetricsEnabled: true });
  }
});
