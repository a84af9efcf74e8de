import { gatewayResponses } from "../../functions/foundation/manifest/gateway-responses.ts";
import { literal } from "../../lib/fixed-headers.ts";
import { dev, type Json, only } from "./synthesized.ts";

const responses = dev.all("AWS::ApiGateway::GatewayResponse").map(({ Properties }) => Properties);
const response = (type: string): Json => only(responses.filter(({ ResponseType }) => ResponseType === type));

test("there is one gateway response per row", () => {
  expect(responses.map(({ ResponseType }) => ResponseType).sort()).toEqual(Object.keys(gatewayResponses).sort());
});

/** Status and error code of every gateway response; DEFAULT_4XX keeps the status of the error. */
const statusAndCode = {
  UNAUTHORIZED: "401 unauthorized",
  ACCESS_DENIED: "401 $context.authorizer.errorCode",
  AUTHORIZER_FAILURE: "503 service_unavailable",
  AUTHORIZER_CONFIGURATION_ERROR: "503 service_unavailable",
  MISSING_AUTHENTICATION_TOKEN: "404 not_found",
  INVALID_SIGNATURE: "404 not_found",
  RESOURCE_NOT_FOUND: "404 not_found",
  REQUEST_TOO_LARGE: "413 payload_too_large",
  UNSUPPORTED_MEDIA_TYPE: "415 unsupported_media_type",
  BAD_REQUEST_BODY: "400 validation_error",
  BAD_REQUEST_PARAMETERS: "400 validation_error",
  THROTTLED: "429 rate_limited",
  QUOTA_EXCEEDED: "429 rate_limited",
  WAF_FILTERED: "429 rate_limited",
  INTEGRATION_TIMEOUT: "503 service_unavailable",
  INTEGRATION_FAILURE: "503 service_unavailable",
  DEFAULT_5XX: "500 internal_error",
  DEFAULT_4XX: "undefined validation_error",
};

test("the responses have these statuses and codes", () => {
  const found = responses.map(({ ResponseType, StatusCode, ResponseTemplates }) => {
    const { error } = JSON.parse(ResponseTemplates["application/json"]);
    return [ResponseType, `${StatusCode} ${error.code}`];
  });
  expect(Object.fromEntries(found)).toEqual(statusAndCode);
});

test.each(responses)("$ResponseType has an error in JSON as its body", ({ ResponseTemplates }) => {
  const body = ResponseTemplates["application/json"].replaceAll(/\$context\.[\w.]+/g, "value-of-the-request");
  expect(JSON.parse(body)).toEqual({
    error: {
      code: expect.stringMatching(/./),
      message: expect.stringMatching(/./),
      request_id: "value-of-the-request",
    },
  });
});

test.each(responses)("$ResponseType has the request id and the security headers", ({ ResponseParameters }) => {
  expect(ResponseParameters).toMatchObject({
    "gatewayresponse.header.x-request-id": "context.requestId",
    "gatewayresponse.header.Cache-Control": "'no-store'",
    "gatewayresponse.header.X-Content-Type-Options": "'nosniff'",
    "gatewayresponse.header.X-Frame-Options": "'DENY'",
    "gatewayresponse.header.Strict-Transport-Security": "'max-age=63072000'",
  });
});

test.each(responses)("$ResponseType maps headers that API Gateway accepts", ({ ResponseParameters }) => {
  for (const [name, expression] of Object.entries(ResponseParameters)) {
    expect(name).toMatch(/^gatewayresponse\.header\.[\w-]+$/);
    expect(expression).toMatch(/^('[^']+'|context\.requestId)$/);
  }
});

test("the response to a request without credentials has a challenge without an error", () => {
  expect(response("UNAUTHORIZED").ResponseParameters["gatewayresponse.header.WWW-Authenticate"]).toBe(
    `'Bearer realm="api"'`,
  );
});

test("the response to a rejected credential has a challenge with an error, and the authorizer's code", () => {
  const { ResponseParameters, ResponseTemplates } = response("ACCESS_DENIED");
  expect(ResponseParameters["gatewayresponse.header.WWW-Authenticate"]).toBe(
    `'Bearer realm="api", error="invalid_token"'`,
  );
  expect(ResponseTemplates["application/json"]).toContain('"code":"$context.authorizer.errorCode"');
});

test.each([
  ["AUTHORIZER_FAILURE", "1"],
  ["AUTHORIZER_CONFIGURATION_ERROR", "1"],
  ["INTEGRATION_TIMEOUT", "1"],
  ["INTEGRATION_FAILURE", "1"],
  ["THROTTLED", "1"],
  ["QUOTA_EXCEEDED", "60"],
  ["WAF_FILTERED", "60"],
])("%s has the header Retry-After with %s s", (type, seconds) => {
  expect(response(type).ResponseParameters["gatewayresponse.header.Retry-After"]).toBe(`'${seconds}'`);
});

test("a fixed header is quoted, and cannot contain a single quote", () => {
  expect(literal('Bearer realm="api"')).toBe(`'Bearer realm="api"'`);
  expect(() => literal("it's")).toThrow("single quote");
});
