import * as apigateway from "aws-cdk-lib/aws-apigateway";
import type { EndpointRow } from "../functions/foundation/manifest/endpoints.ts";
import { routeRows } from "../functions/foundation/manifest/function-rows.ts";
import {
  type GatewayResponseRow,
  gatewayResponses,
  gatewayResponseTemplate,
  methodNotAllowed,
} from "../functions/foundation/manifest/gateway-responses.ts";
import { cors } from "../functions/foundation/manifest/response-headers.ts";
import { corsHeaders, errorHeaders, literal } from "./fixed-headers.ts";
import type { Stage } from "./stage.ts";

/**
 * Adds the responses to requests that match no endpoint: 405 to other methods of a known path, 404 to every other path,
 * and on all paths 204 to the preflight requests of browsers, if the stage allows origins.
 *
 * API Gateway itself cannot send these responses. It has no response type for 405, and it treats the Authorization
 * header of a request to an unknown path as an invalid AWS signature (403). The method ANY matches the requests that no
 * endpoint matches; its mock integration responds without an authorizer. A method OPTIONS beside it would be one more
 * resource for each path.
 */
export function addFallbackMethods(api: apigateway.RestApi, stage: Stage): void {
  const forBrowsers = corsHeaders(stage);
  const preflight = stage.corsOrigins && preflightResponse(stage.corsOrigins);
  const addFixedResponse = (resource: apigateway.IResource, row: FixedRow, extraHeaders = forBrowsers) => {
    const headers = errorHeaders(row, extraHeaders);
    addMock(resource, { statusCode: String(row.status), headers, template: gatewayResponseTemplate(row) }, preflight);
  };
  const rowsByPath = Map.groupBy<string, EndpointRow>(routeRows, (row) => row.path);
  for (const [path, rows] of rowsByPath) {
    const allow = rows.map((row) => row.method).join(", ");
    addFixedResponse(api.root.resourceForPath(path), methodNotAllowed, { Allow: allow, ...forBrowsers });
  }
  const notFound = gatewayResponses.MISSING_AUTHENTICATION_TOKEN;
  const parentsOnly = [...rowsByPath.keys()].flatMap(parentPaths).filter((path) => !rowsByPath.has(path));
  for (const path of new Set(parentsOnly)) addFixedResponse(api.root.resourceForPath(path), notFound);
  addFixedResponse(api.root, notFound);
  addFixedResponse(api.root.addResource("{proxy+}"), notFound);
}

/** Returns the paths above a path: "/v1/projects/{id}" -> "/v1", "/v1/projects". */
function parentPaths(path: string): string[] {
  const parts = path.split("/").slice(1, -1);
  return parts.map((_, index) => `/${parts.slice(0, index + 1).join("/")}`);
}

type FixedRow = GatewayResponseRow & { status: number };

interface FixedResponse {
  statusCode: string;
  /** Mapping expressions by name. */
  headers: Record<string, string>;
  template: string;
}

/**
 * Returns the response to a preflight request. Its origin is the first one, and the template replaces it with that of
 * the request, if this one is allowed too.
 */
function preflightResponse([first = "", ...others]: string[]): FixedResponse {
  const isOther = others.map((origin) => `$origin == "${origin}"`).join(" || ");
  return {
    statusCode: "204",
    headers: {
      "Access-Control-Allow-Origin": literal(first),
      "Access-Control-Allow-Methods": literal(cors.allowedMethods.join(",")),
      "Access-Control-Allow-Headers": literal(cors.allowedHeaders.join(",")),
      "Access-Control-Max-Age": literal(String(cors.maxAgeSeconds)),
      Vary: literal("Origin"),
    },
    template:
      others.length === 0
        ? ""
        : `#set($origin = $input.params().header.get("Origin"))
#if(!$origin || $origin == "")
#set($origin = $input.params().header.get("origin"))
#end
#if(${isOther})
#set($context.responseOverride.header.Access-Control-Allow-Origin = $origin)
#end`,
  };
}

/** @param preflight absent = a preflight request gets the response of every other request */
function addMock(resource: apigateway.IResource, response: FixedResponse, preflight?: FixedResponse): void {
  const responses = preflight ? [response, preflight] : [response];
  const { statusCode } = response;
  const choice = preflight
    ? `#if($context.httpMethod == "OPTIONS") {"statusCode": ${preflight.statusCode}} #else {"statusCode": ${statusCode}} #end`
    : `{"statusCode": ${statusCode}}`;
  const mock = new apigateway.MockIntegration({
    requestTemplates: Object.fromEntries(contentTypes.map((type) => [type, choice])),
    // A body of any other type gets 415. If it were passed through, it would replace the template and the mock would
    // fail.
    passthroughBehavior: apigateway.PassthroughBehavior.NEVER,
    integrationResponses: responses.map((each) => ({
      statusCode: each.statusCode,
      ...(each === preflight && { selectionPattern: each.statusCode }),
      responseTemplates: { "application/json": each.template },
      responseParameters: parametersOf(each, (value) => value),
    })),
  });
  resource.addMethod("ANY", mock, {
    authorizationType: apigateway.AuthorizationType.NONE,
    methodResponses: responses.map((each) => ({
      statusCode: each.statusCode,
      responseParameters: parametersOf(each, () => true),
    })),
  });
}

const parametersOf = <Value>({ headers }: FixedResponse, convert: (value: string) => Value): Record<string, Value> =>
  Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [`method.response.header.${name}`, convert(value)]),
  );

/**
 * API Gateway selects the request template by the exact content type, and the first one for a request without a type.
 */
const contentTypes = ["application/json", "application/x-www-form-urlencoded", "multipart/form-data", "text/plain"];
