import { RESOURCE_METADATA_PATH } from "./protocols.ts";

/** In a header: the address of the API, which is known where the row is rendered. */
export const API_ADDRESS = "$api";
/** Where a client without a credential learns how to get one (RFC 9728, section 5.1). */
const resourceMetadata = `resource_metadata="${API_ADDRESS}${RESOURCE_METADATA_PATH}"`;

/**
 * An error response that API Gateway generates without calling an endpoint. The stack deploys these rows and the local
 * gateway renders them, so both return the error format of `foundation/platform/errors.ts`. Data only. Response types:
 * https://docs.aws.amazon.com/apigateway/latest/developerguide/supported-gateway-response-types.html
 *
 * `code` and `message` may contain `$context` variables, which are inserted without JSON escaping.
 */
export interface GatewayResponseRow {
  /** HTTP status; absent = API Gateway keeps the status of the error. */
  status?: number;
  code: string;
  message: string;
  headers?: Record<string, string>;
}

const retryable = { status: 503, code: "service_unavailable", headers: { "Retry-After": "1" } };

export const gatewayResponses = {
  /** No Authorization header. API Gateway does not call the authorizer. */
  UNAUTHORIZED: {
    status: 401,
    code: "unauthorized",
    message: "Send a JWT or an API key in the header 'Authorization: Bearer <token>'.",
    headers: { "WWW-Authenticate": `Bearer realm="api", ${resourceMetadata}` },
  },
  /** The authorizer denied the request and set the error code (functions/identity/authentication/authorizer.ts). */
  ACCESS_DENIED: {
    status: 401,
    code: "$context.authorizer.errorCode",
    message: "$context.authorizer.errorMessage",
    headers: { "WWW-Authenticate": `Bearer realm="api", error="invalid_token", ${resourceMetadata}` },
  },
  /** The authorizer failed, for example in an outage of DynamoDB. Not a 401, because the credential may be valid. */
  AUTHORIZER_FAILURE: { ...retryable, message: "The credential could not be checked. Try again." },
  AUTHORIZER_CONFIGURATION_ERROR: { ...retryable, message: "The credential could not be checked. Try again." },
  /** Unknown route, despite the name. */
  MISSING_AUTHENTICATION_TOKEN: {
    status: 404,
    code: "not_found",
    message: "The route does not exist. The paths of the API begin with /v1/.",
  },
  /** Unknown route in a request with an Authorization header, which API Gateway parses as an AWS signature. */
  INVALID_SIGNATURE: {
    status: 404,
    code: "not_found",
    message: "The route does not exist. The paths of the API begin with /v1/.",
  },
  RESOURCE_NOT_FOUND: {
    status: 404,
    code: "not_found",
    message: "The route does not exist. The paths of the API begin with /v1/.",
  },
  REQUEST_TOO_LARGE: {
    status: 413,
    code: "payload_too_large",
    message: "The request is too large. Send a body of at most 64 KB.",
  },
  UNSUPPORTED_MEDIA_TYPE: {
    status: 415,
    code: "unsupported_media_type",
    message: "Send the body as 'Content-Type: application/json'.",
  },
  BAD_REQUEST_BODY: { status: 400, code: "validation_error", message: "The request body is not valid." },
  BAD_REQUEST_PARAMETERS: { status: 400, code: "validation_error", message: "The request parameters are not valid." },
  THROTTLED: {
    status: 429,
    code: "rate_limited",
    message: "Too many requests. Wait and try again.",
    headers: { "Retry-After": "1" },
  },
  QUOTA_EXCEEDED: {
    status: 429,
    code: "rate_limited",
    message: "Too many requests. Wait and try again.",
    headers: { "Retry-After": "60" },
  },
  /** All blocking rules of the firewall are rate limits, per minute (lib/firewall.ts). */
  WAF_FILTERED: {
    status: 429,
    code: "rate_limited",
    message: "Too many requests from this address or with this credential. Wait and try again.",
    headers: { "Retry-After": "60" },
  },
  INTEGRATION_TIMEOUT: { ...retryable, message: "The request took too long. Try again." },
  INTEGRATION_FAILURE: { ...retryable, message: "The request could not be processed. Try again." },
  DEFAULT_5XX: { status: 500, code: "internal_error", message: "An internal error occurred. Try again later." },
  /** No status: this type covers errors with different statuses. */
  DEFAULT_4XX: { code: "validation_error", message: "The request is not valid." },
} as const satisfies Record<string, GatewayResponseRow>;

export type GatewayResponseType = keyof typeof gatewayResponses;

/** Known path, wrong method. API Gateway has no response type for this, so a mock method on each path responds. */
export const methodNotAllowed = {
  status: 405,
  code: "method_not_allowed",
  message: "The path does not support this method. The Allow header lists the supported methods.",
} as const satisfies GatewayResponseRow;

/** Returns the body template in the syntax of API Gateway, which replaces `$context…` per request. */
export function gatewayResponseTemplate({ code, message }: GatewayResponseRow): string {
  return `{"error":{"code":"${code}","message":"${message}","request_id":"$context.requestId"}}`;
}
