import type { EndpointRow } from "../functions/foundation/manifest/endpoints.ts";
import {
  type GatewayResponseRow,
  gatewayResponses,
  methodNotAllowed,
} from "../functions/foundation/manifest/gateway-responses.ts";
import { type ErrorCode, statusByCode } from "../functions/foundation/platform/errors.ts";

/** The meaning of each error code. */
export const errorDescriptions: Record<ErrorCode, string> = {
  invalid_json: "The body is not valid JSON.",
  validation_error: "A field or parameter is missing, invalid or unknown; `details` lists each one.",
  unauthorized: "The `Authorization` header is missing or is not a bearer token.",
  invalid_token: "The JWT is not valid.",
  token_expired: "The JWT has expired. Sign in again.",
  invalid_api_key: "The API key is malformed, unknown, deleted or replaced by a roll.",
  api_key_expired: "The `expires_at` of the API key has passed.",
  workflow_not_trusted:
    "The token of the workflow is valid, but no project trusts its repository, or none with its owner, ref, environment, file and event.",
  forbidden:
    "Only admins of the project may do this, and the caller is a viewer; or a report of leaked keys is not signed by the scanner.",
  project_suspended:
    "The operator of the platform has suspended the project. Its deliveries are held, its deliveries and events cannot be read, and nothing is sent, created or changed.",
  session_required: "API keys and workflows cannot do this. Send the JWT of a user.",
  insufficient_permission: "The credential is scoped and does not have the permission that the message names.",
  not_found: "No resource with this id exists, or the caller has no access to it.",
  method_not_allowed: "The path does not support this method.",
  api_key_limit_reached: "The user has reached the maximum number of API keys.",
  webhook_limit_reached: "The project has reached the maximum number of webhooks.",
  service_account_limit_reached: "The project has reached the maximum number of service accounts.",
  trusted_workflow_limit_reached: "The project has reached the maximum number of trusted workflows.",
  conflict: "The current state of the resource does not allow this; the message states why.",
  already_created:
    "A request with this `Idempotency-Key` has already created the resource, whose id is in `details`. Its secret was shown once.",
  idempotency_key_reused: "The `Idempotency-Key` was used for another request in the last 24 hours.",
  payload_too_large: "The body is larger than 64 KB.",
  unsupported_media_type:
    "The `Content-Type` of the body is not `application/json`, or the body has a `Content-Encoding`.",
  rate_limited:
    "Too many requests, or too much read by lists, searches and statistics of the project. Wait for the number of seconds in `Retry-After`.",
  internal_error: "An error in the service.",
  service_unavailable:
    "The service is overloaded or partly unavailable. Retry after `Retry-After`. The credential may be valid.",
};

/** Whether a suspension of the project rejects the request: all but deletions and reads of what is not about its events. */
const isForActiveProjects = ({ method, path, permission }: EndpointRow): boolean =>
  path.startsWith("/v1/projects/{project_id}/") &&
  (method === "POST" || method === "PATCH" || permission === "events:read" || permission === "deliveries:read");

/** Codes that API Gateway can return for any request. */
const gatewayCodes: ErrorCode[] = ["rate_limited", "internal_error", "service_unavailable"];

/** Codes that API Gateway or the authorizer can return where a credential is required. */
const credentialCodes: ErrorCode[] = [
  "unauthorized",
  "invalid_token",
  "token_expired",
  "invalid_api_key",
  "api_key_expired",
  "workflow_not_trusted",
];

/**
 * Returns the error codes that an endpoint can return. They follow from its access, the ids in its path and its inputs.
 * @param hasBody whether it reads a body
 * @param own further codes, from contract/operations.ts
 */
export function errorCodesOf(row: EndpointRow, hasBody: boolean, own: readonly ErrorCode[] = []): ErrorCode[] {
  const { access, path, permission, repeatReturns } = row;
  const codes = new Set<ErrorCode>([
    ...gatewayCodes,
    ...(access === "anyone" ? [] : credentialCodes),
    // Every endpoint rejects query parameters that it does not have.
    "validation_error",
    ...(hasBody ? (["invalid_json", "payload_too_large", "unsupported_media_type"] as const) : []),
    ...(access === "session" || access === "admin_session" ? (["session_required"] as const) : []),
    ...(permission !== "none" ? (["insufficient_permission"] as const) : []),
    ...(access === "admin" || access === "admin_session" ? (["forbidden"] as const) : []),
    ...(repeatReturns ? (["idempotency_key_reused"] as const) : []),
    ...(repeatReturns === "id" ? (["already_created"] as const) : []),
    ...(isForActiveProjects(row) ? (["project_suspended"] as const) : []),
    ...(path.includes("{") ? (["not_found"] as const) : []),
    ...own,
  ]);
  return allCodes.filter((code) => codes.has(code));
}

export const allCodes = Object.keys(statusByCode) as [ErrorCode, ...ErrorCode[]];

const rows: GatewayResponseRow[] = [...Object.values(gatewayResponses), methodNotAllowed];

/** Returns an example message for a code: the gateway response's own, if the code has one. */
export const exampleMessageOf = (code: ErrorCode): string =>
  rows.find((row) => row.code === code)?.message ?? errorDescriptions[code].replaceAll("`", "'");
