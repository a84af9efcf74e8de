import * as apigateway from "aws-cdk-lib/aws-apigateway";
import { type EndpointRow, endpoints } from "../functions/manifest/endpoints.ts";
import {
  type GatewayResponseRow,
  gatewayResponses,
  gatewayResponseTemplate,
  methodNotAllowed,
} from "../functions/manifest/gateway-responses.ts";
import { cors, securityHeaders } from "../functions/manifest/response-headers.ts";
import { constructId } from "./names.ts";
import type { Stage } from "./stage.ts";

/** Gives the errors that API Gateway makes our shape: one gateway response per row of functions/manifest/gateway-responses.ts. */
export function addGatewayResponses(api: apigateway.RestApi, stage: Stage): void {
  for (const [type, row] of Object.entries<GatewayResponseRow>(gatewayResponses)) {
    api.addGatewayResponse(constructId(type.toLowerCase().replaceAll("_", "-")), {
      type: apigateway.ResponseType.of(type),
      ...(row.status && { statusCode: String(row.status) }),
      responseHeaders: headersOf(row, corsHeaders(stage)),
      templates: { "application/json": gatewayResponseTemplate(row) },
    });
  }
}

/**
 * Answers for what has no endpoint, which API Gateway cannot do in our shape by itself: 405 to the other methods of a path,
 * 404 to any method of every other path. (Without it, an unknown path with an Authorization header is a broken AWS
 * signature, 403.) A method ANY takes what no endpoint takes, and its mock integration answers without asking who is calling.
 */
export function addFallbackMethods(api: apigateway.RestApi, stage: Stage): void {
  const forBrowsers = corsHeaders(stage);
  const rowsByPath = Map.groupBy<string, EndpointRow>(endpoints, (row) => row.path);
  for (const [path, rows] of rowsByPath) {
    const allow = rows.map((row) => row.method).join(", ");
    addFixedResponse(api.root.resourceForPath(path), methodNotAllowed, { Allow: allow, ...forBrowsers });
  }
  const notFound = gatewayResponses.MISSING_AUTHENTICATION_TOKEN;
  const between = [...rowsByPath.keys()].flatMap(pathsAbove).filter((path) => !rowsByPath.has(path));
  for (const path of new Set(between)) addFixedResponse(api.root.resourceForPath(path), notFound, forBrowsers);
  addFixedResponse(api.root, notFound, forBrowsers);
  addFixedResponse(api.root.addResource("{proxy+}"), notFound, forBrowsers);
}

/** "/v1/projects/{id}" -> "/v1", "/v1/projects": resources that exist only to hold others. */
function pathsAbove(path: string): string[] {
  const parts = path.split("/").slice(1, -1);
  return parts.map((_, index) => `/${parts.slice(0, index + 1).join("/")}`);
}

function addFixedResponse(
  resource: apigateway.IResource,
  row: GatewayResponseRow & { status: number },
  more: Record<string, string>,
): void {
  const headers = Object.entries(headersOf(row, more));
  const statusCode = String(row.status);
  const mock = new apigateway.MockIntegration({
    requestTemplates: Object.fromEntries(contentTypes.map((type) => [type, `{"statusCode": ${statusCode}}`])),
    // Passed through, a body of another type would stand in for the template, and the mock would answer 500. This is 415.
    passthroughBehavior: apigateway.PassthroughBehavior.NEVER,
    integrationResponses: [
      {
        statusCode,
        responseTemplates: { "application/json": gatewayResponseTemplate(row) },
        responseParameters: Object.fromEntries(headers.map(([name, value]) => [responseHeader(name), value])),
      },
    ],
  });
  resource.addMethod("ANY", mock, {
    authorizationType: apigateway.AuthorizationType.NONE,
    methodResponses: [
      { statusCode, responseParameters: Object.fromEntries(headers.map(([name]) => [responseHeader(name), true])) },
    ],
  });
}

/** API Gateway picks a request template by the exact content type, the first of these when there is none. */
const contentTypes = ["application/json", "application/x-www-form-urlencoded", "multipart/form-data", "text/plain"];

const responseHeader = (name: string) => `method.response.header.${name}`;

/** The headers of an error, as mapping expressions of API Gateway. */
function headersOf(row: GatewayResponseRow, more: Record<string, string>): Record<string, string> {
  const fixed = Object.entries({ ...securityHeaders, ...row.headers, ...more });
  return {
    ...Object.fromEntries(fixed.map(([name, value]) => [name, literal(value)])),
    "x-request-id": "context.requestId",
  };
}

/**
 * Lets a page read why it was refused. API Gateway sends one fixed value: with several origins allowed that is any, which
 * shows a page nothing that it did not ask with a credential of its own.
 */
function corsHeaders({ corsOrigins }: Stage): Record<string, string> {
  if (!corsOrigins) return {};
  const [only = "*", ...others] = corsOrigins;
  return {
    "Access-Control-Allow-Origin": others.length === 0 ? only : "*",
    "Access-Control-Expose-Headers": cors.exposedHeaders.join(", "),
  };
}

/**
 * A fixed value as a mapping expression: in single quotes. There is no way to write one inside.
 * https://docs.aws.amazon.com/apigateway/latest/developerguide/rest-api-parameter-mapping-sources.html
 * @throws Error at synthesis, rather than a failed deployment
 */
export function literal(value: string): string {
  if (value.includes("'")) throw new Error(`API Gateway cannot send a single quote in a fixed header: ${value}`);
  return `'${value}'`;
}
