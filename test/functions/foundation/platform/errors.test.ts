import {
  ApiError,
  type ErrorCode,
  SettingError,
  statusByCode,
} from "../../../../functions/foundation/platform/errors.ts";

/**
 * Pinned as literals: clients depend on the codes and their status. A new code does not compile until it is added here.
 */
const expectedStatus = {
  invalid_json: 400,
  validation_error: 400,
  unauthorized: 401,
  invalid_token: 401,
  token_expired: 401,
  invalid_api_key: 401,
  api_key_expired: 401,
  workflow_not_trusted: 401,
  forbidden: 403,
  session_required: 403,
  insufficient_permission: 403,
  project_suspended: 403,
  not_found: 404,
  method_not_allowed: 405,
  api_key_limit_reached: 409,
  webhook_limit_reached: 409,
  service_account_limit_reached: 409,
  trusted_workflow_limit_reached: 409,
  conflict: 409,
  already_created: 409,
  payload_too_large: 413,
  unsupported_media_type: 415,
  idempotency_key_reused: 422,
  rate_limited: 429,
  internal_error: 500,
  service_unavailable: 503,
} satisfies Record<ErrorCode, number>;

test("each error code has its status, and so has its ApiError", () => {
  expect(statusByCode).toEqual(expectedStatus);
  expect(new ApiError("conflict", "x").status).toBe(409);
});

test("the body of an ApiError has code, message, request id and details, and never the cause", () => {
  const details = [{ path: "name", message: "is required" }];
  const error = new ApiError("validation_error", "The input is not valid.", {
    details,
    headers: { "Retry-After": "1" },
    cause: new Error("internal detail"),
  });
  expect(JSON.parse(error.toBody("request-1"))).toEqual({
    error: { code: "validation_error", message: "The input is not valid.", request_id: "request-1", details },
  });
  expect(error).toMatchObject({ name: "ApiError", headers: { "Retry-After": "1" }, cause: expect.any(Error) });
});

test("the body of an ApiError without details has no field `details`", () => {
  expect(JSON.parse(new ApiError("conflict", "Taken.").toBody("request-1"))).toEqual({
    error: { code: "conflict", message: "Taken.", request_id: "request-1" },
  });
});

test("a SettingError has its own name", () => {
  expect(new SettingError("X is not set")).toMatchObject({ name: "SettingError", message: "X is not set" });
});
