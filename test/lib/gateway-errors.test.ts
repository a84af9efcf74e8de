import { gatewayResponses } from "../../functions/manifest/gateway-responses.ts";
import { literal } from "../../lib/gateway-errors.ts";
import { dev, type Json, only } from "./synthesised.ts";

const responses = dev.all("AWS::ApiGateway::GatewayResponse").map(({ Properties }) => Properties);
const response = (type: string): Json => only(responses.filter(({ ResponseType }) => ResponseType === type));

test("there is one gateway response per row", () => {
  expect(responses.map(({ ResponseType }) => ResponseType).sort()).toEqual(Object.keys(gatewayResponses).sort());
});

test.each(responses)("$ResponseType answers with an error in JSON", ({ ResponseTemplates }) => {
  const body = ResponseTemplates["application/json"].replaceAll(/\$context\.[\w.]+/g, "value-of-the-request");
  expect(JSON.parse(body)).toEqual({
    error: {
      code: expect.stringMatching(/./),
      message: expect.stringMatching(/./),
      request_id: "value-of-the-request",
    },
  });
});

test.each(responses)("$ResponseType carries the request id and is not to be stored", ({ ResponseParameters }) => {
  expect(ResponseParameters).toMatchObject({
    "gatewayresponse.header.x-request-id": "context.requestId",
    "gatewayresponse.header.Cache-Control": "'no-store'",
  });
});

test.each(responses)("$ResponseType maps headers that API Gateway accepts", ({ ResponseParameters }) => {
  for (const [name, expression] of Object.entries(ResponseParameters)) {
    expect(name).toMatch(/^gatewayresponse\.header\.[\w-]+$/);
    expect(expression).toMatch(/^('[^']+'|context\.requestId)$/);
  }
});

test("a request without credentials is told how to authenticate", () => {
  expect(response("UNAUTHORIZED")).toMatchObject({
    StatusCode: "401",
    ResponseParameters: { "gatewayresponse.header.WWW-Authenticate": `'Bearer realm="api"'` },
  });
});

test("a refused credential is a 401 with the authorizer's reason", () => {
  const { StatusCode, ResponseParameters, ResponseTemplates } = response("ACCESS_DENIED");
  expect(StatusCode).toBe("401");
  expect(ResponseParameters["gatewayresponse.header.WWW-Authenticate"]).toBe(
    `'Bearer realm="api", error="invalid_token"'`,
  );
  expect(ResponseTemplates["application/json"]).toContain('"code":"$context.authorizer.errorCode"');
});

test("a failed authorizer is an outage, not a wrong credential", () => {
  for (const type of ["AUTHORIZER_FAILURE", "AUTHORIZER_CONFIGURATION_ERROR"]) {
    expect(response(type).StatusCode).toBe("503");
    expect(response(type).ResponseParameters["gatewayresponse.header.Retry-After"]).toBe("'1'");
  }
});

test("an unknown route is 404, and other client errors keep their status", () => {
  expect(response("MISSING_AUTHENTICATION_TOKEN").StatusCode).toBe("404");
  expect(response("DEFAULT_4XX")).not.toHaveProperty("StatusCode");
});

test("a fixed header is put in single quotes and cannot hold one", () => {
  expect(literal('Bearer realm="api"')).toBe(`'Bearer realm="api"'`);
  expect(() => literal("it's")).toThrow("single quote");
});
