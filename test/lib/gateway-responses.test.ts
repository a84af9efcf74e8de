import {
  type GatewayResponseRow,
  gatewayResponses,
  gatewayResponseTemplate,
} from "../../functions/foundation/manifest/gateway-responses.ts";
import { securityHeaders } from "../../functions/foundation/manifest/response-headers.ts";
import { literal } from "../../lib/fixed-headers.ts";
import { dev, type Json, only } from "./synthesized.ts";

const responses = dev.all("AWS::ApiGateway::GatewayResponse").map(({ Properties }) => Properties);
const response = (type: string): Json => only(responses.filter(({ ResponseType }) => ResponseType === type));

/** With the names of what is known only when the stage is deployed. */
const textOf = ([name, value]: [string, Json]): [string, string] => [
  name,
  typeof value === "string" ? value : value["Fn::Join"][1].map((part: Json) => part.Ref ?? part).join(""),
];
const address = `https://${only(dev.all("AWS::ApiGateway::RestApi")).id}.execute-api.AWS::Region.AWS::URLSuffix/dev`;

test("there is one gateway response per row", () => {
  expect(responses.map(({ ResponseType }) => ResponseType).sort()).toEqual(Object.keys(gatewayResponses).sort());
});

// test/functions/foundation/manifest/rows.test.ts has their values.
test.each(Object.entries<GatewayResponseRow>(gatewayResponses))(
  "%s has the status, the body and the headers of its row, the request id and the security headers",
  (type, row) => {
    const { StatusCode, ResponseTemplates, ResponseParameters } = response(type);
    expect([StatusCode, ResponseTemplates]).toEqual([
      row.status === undefined ? undefined : String(row.status),
      { "application/json": gatewayResponseTemplate(row) },
    ]);
    const fixed = Object.entries({ ...securityHeaders, ...row.headers });
    expect(Object.fromEntries(Object.entries(ResponseParameters).map(textOf))).toEqual({
      "gatewayresponse.header.x-request-id": "context.requestId",
      ...Object.fromEntries(
        fixed.map(([name, value]) => [`gatewayresponse.header.${name}`, `'${value.replace("$api", address)}'`]),
      ),
    });
  },
);

test.each(responses)("$ResponseType maps headers that API Gateway accepts", ({ ResponseParameters }) => {
  for (const [name, expression] of Object.entries(ResponseParameters).map(textOf)) {
    expect(name).toMatch(/^gatewayresponse\.header\.[\w-]+$/);
    expect(expression).toMatch(/^('[^']+'|context\.requestId)$/);
  }
});

test("a fixed header is quoted, and cannot contain a single quote", () => {
  expect(literal('Bearer realm="api"')).toBe(`'Bearer realm="api"'`);
  expect(() => literal("it's")).toThrow("single quote");
});
