import type { GatewayResponseRow } from "../functions/foundation/manifest/gateway-responses.ts";
import { cors, securityHeaders } from "../functions/foundation/manifest/response-headers.ts";
import type { Stage } from "./stage.ts";

/* Headers of the responses that API Gateway creates itself. Their values are fixed at deploy time. */

/**
 * Returns the headers of an error as mapping expressions of API Gateway, including the id of the request.
 * @param extraHeaders headers in addition to those of the row and the security headers
 */
export function errorHeaders(row: GatewayResponseRow, extraHeaders: Record<string, string>): Record<string, string> {
  const fixed = Object.entries({ ...securityHeaders, ...row.headers, ...extraHeaders });
  return {
    ...Object.fromEntries(fixed.map(([name, value]) => [name, literal(value)])),
    "x-request-id": "context.requestId",
  };
}

/**
 * Returns the CORS headers that let a web page read an error; none if the stage allows no origins. The value is fixed,
 * so several allowed origins become `*`. This is safe, because an error response of API Gateway contains no user data.
 */
export function corsHeaders({ corsOrigins }: Pick<Stage, "corsOrigins">): Record<string, string> {
  if (!corsOrigins) return {};
  const [first = "*", ...others] = corsOrigins;
  return {
    "Access-Control-Allow-Origin": others.length === 0 ? first : "*",
    "Access-Control-Expose-Headers": cors.exposedHeaders.join(", "),
  };
}

/**
 * Returns a fixed value as a mapping expression: in single quotes, which cannot be escaped.
 * https://docs.aws.amazon.com/apigateway/latest/developerguide/rest-api-parameter-mapping-sources.html
 * @throws Error at synthesis when the value contains a single quote, which would make the deployment fail
 */
export function literal(value: string): string {
  if (value.includes("'")) throw new Error(`API Gateway cannot send a single quote in a fixed header: ${value}`);
  return `'${value}'`;
}
