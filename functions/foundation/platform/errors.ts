/** All error codes of the API and their HTTP status. Codes are part of the API and never change; messages may. */
export const statusByCode = {
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
} as const;

export type ErrorCode = keyof typeof statusByCode;

/** One invalid field of the input: its path (`events.0`, empty for the whole body) and the rule that it violates. */
export interface ErrorDetail {
  path: string;
  message: string;
}

interface ErrorExtras extends ErrorOptions {
  details?: ErrorDetail[];
  headers?: Record<string, string>;
}

/** An error response. The caller receives the code, the message and the details; the `cause` is only logged. */
export class ApiError extends Error {
  readonly code: ErrorCode;
  readonly details: ErrorDetail[] | undefined;
  readonly headers: Record<string, string>;

  constructor(code: ErrorCode, message: string, { details, headers = {}, ...options }: ErrorExtras = {}) {
    super(message, options);
    this.name = "ApiError";
    this.code = code;
    this.details = details;
    this.headers = headers;
  }

  get status(): number {
    return statusByCode[this.code];
  }

  /** Returns the body of the response as JSON. */
  toBody(requestId: string): string {
    const { code, message, details } = this;
    return JSON.stringify({ error: { code, message, request_id: requestId, details } });
  }
}

/** Returns the error for a change that others have outrun at every try. Not a 5xx, which alarms count: users could cause it as they like. */
export const tooManyChanges = (changed: string): ApiError =>
  new ApiError("rate_limited", `Too many requests change this ${changed} at once. Try again.`, {
    headers: { "Retry-After": "1" },
  });

export const projectSuspended = (cause?: unknown) =>
  new ApiError(
    "project_suspended",
    "The project is suspended: its deliveries are held and cannot be read, and nothing is sent, created or changed. Contact the operator of the platform.",
    { cause },
  );

/** A setting is missing or invalid. The message names the setting and is meant for the operator. */
export class SettingError extends Error {
  override readonly name = "SettingError";
}
