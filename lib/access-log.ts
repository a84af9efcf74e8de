import { RemovalPolicy } from "aws-cdk-lib";
import { AccessLogFormat, type IAccessLogDestination, LogGroupLogDestination } from "aws-cdk-lib/aws-apigateway";
import { LogGroup } from "aws-cdk-lib/aws-logs";
import type { Construct } from "constructs";
import type { StageContext } from "./service-function.ts";

/**
 * One JSON line per request, refused ones too. `requestId` is the one that callers get in `x-request-id` and that the
 * functions log. Neither credentials nor query strings nor bodies are here, and no text of the caller's own choice, a
 * User-Agent for one: API Gateway would not escape it.
 * https://docs.aws.amazon.com/apigateway/latest/developerguide/api-gateway-mapping-template-reference.html
 */
const fields = {
  requestId: "$context.requestId",
  /** The id that nobody but AWS can choose: a client may set the other with a header. */
  extendedRequestId: "$context.extendedRequestId",
  time: "$context.requestTime",
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
  /** Why a credential was refused, and which gateway response was made. */
  errorCode: "$context.authorizer.errorCode",
  gatewayError: "$context.error.responseType",
  firewall: "$context.wafResponseCode",
};

export function accessLog(
  scope: Construct,
  { stage, key }: StageContext,
): { accessLogDestination: IAccessLogDestination; accessLogFormat: AccessLogFormat } {
  const group = new LogGroup(scope, "AccessLog", {
    retention: stage.logRetention,
    removalPolicy: stage.keepsData ? RemovalPolicy.RETAIN : RemovalPolicy.DESTROY,
    ...(key && { encryptionKey: key }),
  });
  return {
    accessLogDestination: new LogGroupLogDestination(group),
    accessLogFormat: AccessLogFormat.custom(JSON.stringify(fields)),
  };
}
