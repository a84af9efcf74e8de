import { AccessLogFormat, type IAccessLogDestination, LogGroupLogDestination } from "aws-cdk-lib/aws-apigateway";
import { FilterPattern } from "aws-cdk-lib/aws-logs";
import type { Construct } from "constructs";
import { METRICS_NAMESPACE } from "../functions/foundation/manifest/metrics.ts";
import { createLogGroup } from "./log-group.ts";
import type { StageContext } from "./service-function.ts";

/**
 * The fields of a log line. There is one JSON line per request, rejected requests included. No field may hold a
 * credential, a query string, a body, or free text of the caller such as the User-Agent, which API Gateway would not
 * escape.
 * https://docs.aws.amazon.com/apigateway/latest/developerguide/api-gateway-mapping-template-reference.html
 */
const fields = {
  /** Callers receive it in `x-request-id`, and the functions log it as `request_id`. */
  requestId: "$context.requestId",
  /** Always set by AWS. A client can set `requestId` with the header X-Amzn-RequestId. */
  extendedRequestId: "$context.extendedRequestId",
  time: "$context.requestTime",
  /** The dimension of SERVER_ERRORS. */
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
  /** Why the authorizer rejected the credential. */
  errorCode: "$context.authorizer.errorCode",
  /** Type of the gateway response, if API Gateway responded itself. */
  gatewayError: "$context.error.responseType",
  firewall: "$context.wafResponseCode",
};

/** Name of the metric that counts the requests with a 5xx response. */
export const SERVER_ERRORS = "ServerErrors";

/** Creates the log group of the access log, which counts 5xx responses, and returns the options of an API stage that write to it. */
export function accessLog(
  scope: Construct,
  context: StageContext,
): { accessLogDestination: IAccessLogDestination; accessLogFormat: AccessLogFormat } {
  const group = createLogGroup(scope, "AccessLog", context);
  // Not the metric 5XXError: API Gateway counts a gateway response as 4XXError if its status or its body is changed, and
  // all of ours are. https://docs.aws.amazon.com/apigateway/latest/developerguide/api-gateway-metrics-and-dimensions.html
  group.addMetricFilter("ServerErrors", {
    filterPattern: FilterPattern.stringValue("$.status", "=", "5*"),
    metricNamespace: METRICS_NAMESPACE,
    metricName: SERVER_ERRORS,
    dimensions: { stage: "$.stage" },
  });
  return {
    accessLogDestination: new LogGroupLogDestination(group),
    accessLogFormat: AccessLogFormat.custom(JSON.stringify(fields)),
  };
}
