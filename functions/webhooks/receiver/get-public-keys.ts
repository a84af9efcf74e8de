import type { APIGatewayProxyEvent, APIGatewayProxyResult } from "aws-lambda";
import { responseHeaders } from "../../foundation/http/define-endpoint.ts";
import { ApiError } from "../../foundation/platform/errors.ts";
import { log } from "../../foundation/platform/log.ts";
import { canonicalUuid } from "../../foundation/platform/uuid.ts";
import { publicKeys } from "./project-keys.ts";

/** How long a receiver may keep the keys: a new one is in the directory for longer before it signs. */
const MAX_AGE_SECONDS = 3_600;

const errorOf = (error: unknown): ApiError =>
  error instanceof ApiError
    ? error
    : new ApiError("service_unavailable", "The keys cannot be read. Try again.", { headers: { "Retry-After": "5" } });

/**
 * Returns the public keys of a project as an HTTP Message Signatures Directory, which is a JSON Web Key Set (RFC 7517).
 * Any id has keys, so that the answer does not say which projects exist; no table is read.
 */
export async function handler(event: APIGatewayProxyEvent): Promise<APIGatewayProxyResult> {
  const { requestId } = event.requestContext;
  return log.scope({ request_id: requestId }, async () => {
    try {
      const projectId = canonicalUuid(event.queryStringParameters?.project_id);
      if (projectId === undefined) throw new ApiError("not_found", "Pass ?project_id=<the id of a project>.");
      const body = JSON.stringify({ keys: await publicKeys(projectId, new Date()) });
      const own = {
        "Content-Type": "application/http-message-signatures-directory+json",
        "Cache-Control": `public, max-age=${MAX_AGE_SECONDS}`,
      };
      return { statusCode: 200, headers: { ...responseHeaders(event, body), ...own }, body };
    } catch (cause) {
      const error = errorOf(cause);
      if (error.status >= 500) log.error("request failed", cause);
      const body = error.toBody(requestId);
      return { statusCode: error.status, headers: { ...responseHeaders(event, body), ...error.headers }, body };
    }
  });
}
