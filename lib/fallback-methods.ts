import * as apigateway from "aws-cdk-lib/aws-apigateway";
import { type EndpointRow, endpoints } from "../functions/manifest/endpoints.ts";
import {
  type GatewayResponseRow,
  gatewayResponses,
  gatewayResponseTemplate,
  methodNotAllowed,
} from "../functions/manifest/gateway-responses.ts";
import { corsHeaders, errorHeaders } from "./fixed-headers.ts";
import type { Stage } from "./stage.ts";

/**
 * Adds the responses to requests that match no endpoint: 405 to other methods of a known path, 404 to every other path.
 *
 * API Gateway itself cannot send these responses. It has no response type for 405, and it treats the Authorization
 * header of a request to an unknown path as an invalid AWS signature (403). The method ANY matches the requests that no
 * endpoint matches; its mock integration responds without an authorizer.
 */
export function addFallbackMethods(api: apigateway.RestApi, stage: Stage): void {
  const forBrowsers = corsHeaders(stage);
  const rowsByPath = Map.groupBy<string, EndpointRow>(endpoints, (row) => row.path);
  for (const [path, rows] of rowsByPath) {
    const allow = rows.map((row) => row.method).join(", ");
    addFixedResponse(api.root.resourceForPath(path), methodNotAllowed, { Allow: allow, ...forBrowsers });
  }
  const notFound = gatewayResponses.MISSING_AUTHENTICATION_TOKEN;
  const parentsOnly = [...rowsByPath.keys()].flatMap(parentPaths).filter((path) => !rowsByPath.has(path));
  for (const path of new Set(parentsOnly)) addFixedResponse(api.root.resourceForPath(path), notFound, forBrowsers);
  addFixedResponse(api.root, notFound, forBrowsers);
  addFixedResponse(api.root.addResource("{proxy+}"), notFound, forBrowsers);
}

/** Returns the paths above a path: "/v1/projects/{id}" -> "/v1", "/v1/projects". */
function parentPaths(path: string): string[] {
  const parts = path.split("/").slice(1, -1);
  return parts.map((_, index) => `/${parts.slice(0, index + 1).join("/")}`);
}

function addFixedResponse(
  resource: apigateway.IResource,
  row: GatewayResponseRow & { status: number },
  extraHeaders: Record<string, string>,
): void {
  const headers = Object.entries(errorHeaders(row, extraHeaders));
  const statusCode = String(row.status);
  const mock = new apigateway.MockIntegration({
    requestTemplates: Object.fromEntries(contentTypes.map((type) => [type, `{"statusCode": ${statusCode}}`])),
    // A body of any other type gets 415. If it were passed through, it would replace the template and the mock would
    // fail.
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

/**
 * API Gateway selects the request template by the exact content type, and the first one for a request without a type.
 */
const contentTypes = ["application/json", "application/x-www-form-urlencoded", "multipart/form-data", "text/plain"];

const responseHeader = (name: string) => `method.response.header.${name}`;
