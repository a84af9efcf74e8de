/**
 * The errors that API Gateway itself answers with, one row each: the stack deploys them and the local gateway renders
 * them, so both sides speak the error shape of `platform/errors.ts`. Data only. Response types:
 * https://docs.aws.amazon.com/apigateway/latest/developerguide/supported-gateway-response-types.html
 *
 * `code` and `message` may hold `$context` variables. The authorizer's texts hold nothing that JSON would escape.
 */
export interface GatewayResponseRow {
  /** Absent: API Gateway keeps the status of the error. */
  status?: number;
  code: string;
  message: string;
  headers?: Record<string, string>;
}

const retryable = { status: 503, code: "service_unavailable", headers: { "Retry-After": "1" } };

export const gatewayResponses = {
  /** No Authorization header: API Gateway does not even ask the authorizer. */
  UNAUTHORIZED: {
    status: 401,
    code: "unauthorized",
    message: "Send a JWT or an API key in the header 'Authorization: Bearer <token>'.",
    headers: { "WWW-Authenticate": 'Bearer realm="api"' },
  },
  /** The authorizer said no, and why (functions/auth/authorizer.ts). */
  ACCESS_DENIED: {
    status: 401,
    code: "$context.authorizer.errorCode",
    message: "$context.authorizer.errorMessage",
    headers: { "WWW-Authenticate": 'Bearer realm="api", error="invalid_token"' },
  },
  /** The authorizer itself failed, a store outage for one. Never a 401: the credential may be fine. */
  AUTHORIZER_FAILURE: { ...retryable, message: "The credential could not be checked. Try again." },
  AUTHORIZER_CONFIGURATION_ERROR: { ...retryable, message: "The credential could not be checked. Try again." },
  /** API Gateway's name for an unknown route. */
  MISSING_AUTHENTICATION_TOKEN: { status: 404, code: "not_found", message: "There is no such route." },
  /** And when the request has an Authorization header, which it then takes for an AWS signature: no route of ours is signed. */
  INVALID_SIGNATURE: { status: 404, code: "not_found", message: "There is no such route." },
  RESOURCE_NOT_FOUND: { status: 404, code: "not_found", message: "There is no such route." },
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
  /** The firewall's one rule that stops requests is that of the rate (lib/firewall.ts); it looks at five minutes. */
  WAF_FILTERED: {
    status: 429,
    code: "rate_limited",
    message: "Too many requests from this address. Wait and try again.",
    headers: { "Retry-After": "60" },
  },
  INTEGRATION_TIMEOUT: { ...retryable, message: "The request took too long. Try again." },
  INTEGRATION_FAILURE: { ...retryable, message: "The request could not be served. Try again." },
  DEFAULT_5XX: { status: 500, code: "internal_error", message: "Something went wrong on our side." },
  /** No status of its own: it covers errors of many statuses. */
  DEFAULT_4XX: { code: "validation_error", message: "The request is not valid." },
} as const satisfies Record<string, GatewayResponseRow>;

export type GatewayResponseType = keyof typeof gatewayResponses;

/** Known path, wrong method. API Gateway has no response type for it: a mock method on each path answers. */
export const methodNotAllowed = {
  status: 405,
  code: "method_not_allowed",
  message: "This path does not take that method. The Allow header lists those it takes.",
} as const satisfies GatewayResponseRow;

/** The body template, in the syntax of API Gateway: `$context…` is filled in per request. */
export function gatewayResponseTemplate({ code, message }: GatewayResponseRow): string {
  return `{"error":{"code":"${code}","message":"${message}","request_id":"$context.requestId"}}`;
}
