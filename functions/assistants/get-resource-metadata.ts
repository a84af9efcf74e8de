import type { APIGatewayProxyEvent, APIGatewayProxyResult } from "aws-lambda";
import { responseHeaders } from "../foundation/http/define-endpoint.ts";
import { settings } from "../foundation/platform/env.ts";
import { apiUrlOf } from "./api-url.ts";

/**
 * Returns what RFC 9728 calls the metadata of the protected resource `POST /mcp`. Without a public issuer in the stage
 * it names no authorization server: the credential is then an API key.
 */
export async function handler(event: APIGatewayProxyEvent): Promise<APIGatewayProxyResult> {
  const issuer = settings.jwksIssuer() ?? settings.jwtIssuer();
  const metadata = {
    resource: `${apiUrlOf(event)}/mcp`,
    resource_name: "Deployment webhooks",
    ...(issuer !== undefined && URL.canParse(issuer) && { authorization_servers: [issuer] }),
    bearer_methods_supported: ["header"],
  };
  const body = JSON.stringify(metadata);
  return { statusCode: 200, headers: responseHeaders(event, body), body };
}
