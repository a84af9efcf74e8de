import { dev, only, SynthesizedStack } from "./synthesized.ts";

const stageOf = (stack: SynthesizedStack) => only(stack.all("AWS::ApiGateway::Stage")).Properties;
const groupOf = (stack: SynthesizedStack) =>
  stack.target(stageOf(stack).AccessLogSetting.DestinationArn["Fn::Join"][1].at(-1));

test("a line of the access log is a JSON object with these fields", () => {
  expect(JSON.parse(stageOf(dev).AccessLogSetting.Format)).toEqual({
    requestId: "$context.requestId",
    extendedRequestId: "$context.extendedRequestId",
    time: "$context.requestTime",
    stage: "$context.stage",
    ip: "$context.identity.sourceIp",
    method: "$context.httpMethod",
    route: "$context.resourcePath",
    status: "$context.status",
    responseBytes: "$context.responseLength",
    latencyMs: "$context.responseLatency",
    integrationLatencyMs: "$context.integrationLatency",
    authorizerLatencyMs: "$context.authorizer.latency",
    userId: "$context.authorizer.userId",
    authType: "$context.authorizer.authType",
    keyId: "$context.authorizer.keyId",
    errorCode: "$context.authorizer.errorCode",
    gatewayError: "$context.error.responseType",
    firewall: "$context.wafResponseCode",
  });
});

test("counts every 5xx response in a metric of the stage, whatever API Gateway counts it as", () => {
  const { LogGroupName, FilterPattern, MetricTransformations } = only(dev.all("AWS::Logs::MetricFilter")).Properties;
  expect(dev.target(LogGroupName).id).toBe(groupOf(dev).id);
  expect(FilterPattern).toBe('{ $.status = "5*" }');
  expect(MetricTransformations).toEqual([
    {
      MetricNamespace: "DeploymentWebhooks",
      MetricName: "ServerErrors",
      MetricValue: "1",
      Dimensions: [{ Key: "stage", Value: "$.stage" }],
    },
  ]);
});

test("no field contains a credential or free text of the caller", () => {
  expect(stageOf(dev).AccessLogSetting.Format).not.toMatch(/header|querystring|body|userAgent|authorizer\.token/i);
});

test.each([
  ["a week and is deleted with the stage", "dev", 7, "Delete"],
  ["three months and outlives the stage", "prod", 90, "RetainExceptOnCreate"],
] as const)("the log is kept for %s, in %s", (_, name, days, policy) => {
  const stack = new SynthesizedStack(name);
  const group = groupOf(stack);
  expect(group.Properties.RetentionInDays).toBe(days);
  expect(group.DeletionPolicy).toBe(policy);
});

test("the role that writes the log, one per account, is set unless another stack sets it", () => {
  expect(only(dev.all("AWS::ApiGateway::Account")).DeletionPolicy).toBe("Retain");
  expect(new SynthesizedStack("everyOption").all("AWS::ApiGateway::Account")).toEqual([]);
});
