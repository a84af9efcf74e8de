import type { EndpointRow } from "../../functions/manifest/endpoints.ts";
import {
  type GatewayResponseRow,
  gatewayResponses,
  methodNotAllowed,
} from "../../functions/manifest/gateway-responses.ts";
import { type ErrorCode, statusByCode } from "../../functions/platform/errors.ts";

/** What each code means, for people. */
export const meaningOf: Record<ErrorCode, string> = {
  invalid_json: "The body is not JSON.",
  validation_error: "A field or parameter is missing, wrong or unknown; `details` says which.",
  unauthorized: "There is no usable `Authorization` header.",
  invalid_token: "The JWT does not hold.",
  token_expired: "The JWT has expired: sign in again.",
  invalid_api_key: "The API key is malformed, unknown or deleted.",
  forbidden: "A viewer of the project may look but not change.",
  session_required: "An API key may not do this: send a JWT.",
  not_found: "There is nothing with this id, or it is not yours.",
  method_not_allowed: "The path does not take this method.",
  api_key_limit_reached: "The user has as many keys as one can have.",
  webhook_limit_reached: "The project has as many webhooks as one can have.",
  conflict: "It cannot be done in the state that things are in; the message says why.",
  payload_too_large: "The body is larger than 64 KB.",
  unsupported_media_type: "The body is not sent as `Content-Type: application/json`.",
  rate_limited: "Too many requests: wait as long as `Retry-After` says.",
  internal_error: "A fault of the service.",
  service_unavailable: "The service is busy or partly down: try again after `Retry-After`. The credential may be fine.",
};

/** Codes that the front door may answer to any request whatever it asks for, by itself or from the authorizer. */
const ofTheFrontDoor: ErrorCode[] = [
  "unauthorized",
  "invalid_token",
  "token_expired",
  "invalid_api_key",
  "rate_limited",
  "internal_error",
  "service_unavailable",
];

interface Takes {
  body: boolean;
  query: boolean;
}

/** Every code that an endpoint may answer with: by its access, the ids in its path, what it takes, and on its own account. */
export function codesOf({ access, path }: EndpointRow, takes: Takes, own: readonly ErrorCode[] = []): ErrorCode[] {
  const codes = new Set<ErrorCode>([
    ...ofTheFrontDoor,
    ...(takes.body
      ? (["invalid_json", "validation_error", "payload_too_large", "unsupported_media_type"] as const)
      : []),
    ...(takes.query ? (["validation_error"] as const) : []),
    ...(access === "session" ? (["session_required"] as const) : []),
    ...(access === "admin" ? (["forbidden"] as const) : []),
    ...(path.includes("{") ? (["not_found"] as const) : []),
    ...own,
  ]);
  return allCodes.filter((code) => codes.has(code));
}

export const allCodes = Object.keys(statusByCode) as [ErrorCode, ...ErrorCode[]];

const rows: GatewayResponseRow[] = [...Object.values(gatewayResponses), methodNotAllowed];

/** An example of a message: the front door's own where it has one. */
export const messageOf = (code: ErrorCode): string =>
  rows.find((row) => row.code === code)?.message ?? meaningOf[code].replaceAll("`", "'");
