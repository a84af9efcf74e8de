import { cors, securityHeaders } from "../../functions/manifest/response-headers.ts";
import { stageNamed } from "../../lib/stages.ts";
import { everyOption } from "./every-option.ts";
import { dev, type Json, only, Synthesised } from "./synthesised.ts";

/* What stands between the internet and the endpoints: domain, browsers, firewall, throttling, access log. */

const every = new Synthesised(everyOption);
const stageOf = (stack: Synthesised) => only(stack.all("AWS::ApiGateway::Stage")).Properties;

describe("the domain", () => {
  const withoutZone = new Synthesised({
    ...stageNamed("dev"),
    domain: { name: "api.example.com", certificateArn: everyOption.domain?.certificateArn ?? "" },
  });

  test("takes the place of API Gateway's own address", () => {
    expect(every.template.Outputs.ApiUrl.Value).toBe("https://api.example.com");
    expect(only(every.all("AWS::ApiGateway::RestApi")).Properties.DisableExecuteApiEndpoint).toBe(true);
    expect(only(dev.all("AWS::ApiGateway::RestApi")).Properties.DisableExecuteApiEndpoint).toBe(false);
  });

  test("leads to the stage and refuses old TLS", () => {
    const name = only(every.all("AWS::ApiGateway::DomainName"));
    expect(name.Properties).toMatchObject({ DomainName: "api.example.com", SecurityPolicy: "TLS_1_2" });
    const { DomainName, Stage } = only(every.all("AWS::ApiGateway::BasePathMapping")).Properties;
    expect(every.target(DomainName).id).toBe(name.id);
    expect(every.target(Stage).Type).toBe("AWS::ApiGateway::Stage");
  });

  test("is put into the zone, or its target is told", () => {
    const records = every
      .all("AWS::Route53::RecordSet")
      .map(({ Properties }) => [Properties.Type, Properties.Name])
      .filter(([, name]) => name.startsWith("api."));
    expect(records.sort()).toEqual([
      ["A", "api.example.com."],
      ["AAAA", "api.example.com."],
    ]);
    expect(every.template.Outputs).not.toHaveProperty("ApiDomainTarget");
    expect(withoutZone.all("AWS::Route53::RecordSet")).toEqual([]);
    expect(withoutZone.template.Outputs).toHaveProperty("ApiDomainTarget");
  });
});

describe("pages of other origins", () => {
  const one = new Synthesised({ ...stageNamed("dev"), corsOrigins: ["https://app.example.com"] });
  const optionsOf = (stack: Synthesised) =>
    stack.all("AWS::ApiGateway::Method").filter(({ Properties }) => Properties.HttpMethod === "OPTIONS");

  test("may not call the API unless the stage names them", () => {
    expect(optionsOf(dev)).toEqual([]);
    expect(JSON.stringify(dev.template)).not.toMatch(/Access-Control|CORS_ORIGINS/);
  });

  test("are told on every path what they may send", () => {
    expect(optionsOf(one)).toHaveLength(one.all("AWS::ApiGateway::Resource").length + 1);
    for (const { Properties } of optionsOf(one)) {
      expect(Properties.AuthorizationType).toBe("NONE");
      const { ResponseParameters } = Properties.Integration.IntegrationResponses[0];
      expect(ResponseParameters).toMatchObject({
        "method.response.header.Access-Control-Allow-Origin": "'https://app.example.com'",
        "method.response.header.Access-Control-Allow-Headers": "'Authorization,Content-Type'",
        "method.response.header.Access-Control-Max-Age": `'${cors.maxAgeSeconds}'`,
      });
    }
  });

  test.each([
    ["with one origin, that one", one, "'https://app.example.com'"],
    ["with several, any: the answer is one fixed value", every, "'*'"],
  ])("may read why they were refused: %s", (_, stack, origin) => {
    const responses = stack.all("AWS::ApiGateway::GatewayResponse");
    expect(responses.length).toBeGreaterThan(10);
    for (const { Properties } of responses) {
      expect(Properties.ResponseParameters).toMatchObject({
        "gatewayresponse.header.Access-Control-Allow-Origin": origin,
        "gatewayresponse.header.Access-Control-Expose-Headers": `'${cors.exposedHeaders.join(", ")}'`,
      });
    }
    const mocks = stack.all("AWS::ApiGateway::Method").filter(({ Properties }) => Properties.HttpMethod === "ANY");
    for (const { Properties } of mocks) {
      const { ResponseParameters } = Properties.Integration.IntegrationResponses[0];
      expect(ResponseParameters["method.response.header.Access-Control-Allow-Origin"]).toBe(origin);
    }
  });

  test("are known to every endpoint, which answers them itself", () => {
    const { Variables } = every.functionFor("webhooks/list").Properties.Environment;
    expect(Variables.CORS_ORIGINS).toBe("https://app.example.com,http://localhost:5173");
    expect(every.functionFor("attempts/send").Properties.Environment.Variables).not.toHaveProperty("CORS_ORIGINS");
  });
});

test.each(Object.entries(securityHeaders))("every error that API Gateway makes carries %s", (name, value) => {
  for (const { Properties } of dev.all("AWS::ApiGateway::GatewayResponse")) {
    expect(Properties.ResponseParameters[`gatewayresponse.header.${name}`]).toBe(`'${value}'`);
  }
});

describe("the firewall", () => {
  test("is there only when the stage asks for it", () => {
    expect(dev.all("AWS::WAFv2::WebACL")).toEqual([]);
  });

  test("stops an address that sends too much, and counts what AWS's own rules find", () => {
    const { DefaultAction, Rules } = only(every.all("AWS::WAFv2::WebACL")).Properties;
    expect(DefaultAction).toEqual({ Allow: {} });
    const [rate, ...managed] = Rules;
    expect(rate).toMatchObject({
      Action: { Block: {} },
      Statement: { RateBasedStatement: { AggregateKeyType: "IP", Limit: 3_000 } },
    });
    expect(managed.length).toBeGreaterThan(0);
    for (const rule of managed) expect(rule.OverrideAction).toEqual({ Count: {} });
    expect(new Set(Rules.map(({ Priority }: Json) => Priority)).size).toBe(Rules.length);
  });

  test("stands before the API, and keeps no samples of requests", () => {
    const { WebACLArn } = only(every.all("AWS::WAFv2::WebACLAssociation")).Properties;
    const acl = every.target(WebACLArn);
    for (const { VisibilityConfig } of [acl.Properties, ...acl.Properties.Rules]) {
      expect(VisibilityConfig.SampledRequestsEnabled).toBe(false);
    }
  });

  test("answers what it stops as too many requests, when to come back included", () => {
    const waf = dev
      .all("AWS::ApiGateway::GatewayResponse")
      .find(({ Properties }) => Properties.ResponseType === "WAF_FILTERED");
    expect(waf?.Properties).toMatchObject({ StatusCode: "429" });
    expect(waf?.Properties.ResponseParameters["gatewayresponse.header.Retry-After"]).toBe("'60'");
  });
});

describe("the access log", () => {
  test("is one JSON line per request, with the id that the caller and the functions know", () => {
    const { AccessLogSetting } = stageOf(dev);
    const line = JSON.parse(AccessLogSetting.Format);
    expect(line).toMatchObject({
      requestId: "$context.requestId",
      status: "$context.status",
      latencyMs: "$context.responseLatency",
    });
    const group = dev.target(AccessLogSetting.DestinationArn);
    expect(group.Properties.RetentionInDays).toBe(7);
  });

  test("holds nothing that callers write freely, credentials least of all", () => {
    expect(stageOf(dev).AccessLogSetting.Format).not.toMatch(/header|querystring|body|userAgent|authorizer\.token/i);
  });

  test("needs a role that the account has once, which another stack may set", () => {
    expect(dev.all("AWS::ApiGateway::Account")).toHaveLength(1);
    expect(every.all("AWS::ApiGateway::Account")).toEqual([]);
    expect(only(dev.all("AWS::ApiGateway::Account")).DeletionPolicy).toBe("Retain");
  });
});

test("the throttle is the stage's", () => {
  expect(stageOf(every).MethodSettings).toMatchObject([{ ThrottlingRateLimit: 5_000, ThrottlingBurstLimit: 10_000 }]);
});
