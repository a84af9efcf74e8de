import type { components } from "./schema.d.ts";

export interface ErrorDetail {
  /** The path of the field: `events.0`. Empty for the whole body. */
  path: string;
  message: string;
}

/** The error codes of the API. A later version may add codes. */
export type ErrorCode =
  components["responses"][keyof components["responses"]]["content"]["application/json"]["error"]["code"];

interface ErrorBody {
  code: string;
  message: string;
  request_id: string;
  details?: ErrorDetail[];
}

/** The API rejected a request, or failed to process it. */
export class ApiError extends Error {
  override readonly name = "ApiError";
  readonly status: number;
  readonly code: ErrorCode | (string & {});
  readonly requestId: string;
  /** The invalid fields. Empty unless the code is `validation_error`. */
  readonly details: ErrorDetail[];
  /** The wait before a retry; undefined if the response has no `Retry-After`. */
  readonly retryAfterSeconds: number | undefined;

  constructor(status: number, { code, message, request_id, details = [] }: ErrorBody, retryAfterSeconds?: number) {
    super(message);
    this.status = status;
    this.code = code;
    this.requestId = request_id;
    this.details = details;
    this.retryAfterSeconds = retryAfterSeconds;
  }

  /** @returns undefined when the response is not an error of this API */
  static of({ status, headers, text }: { status: number; headers: Headers; text: string }): ApiError | undefined {
    const error = status >= 400 ? readErrorBody(text) : undefined;
    if (!error) return undefined;
    const seconds = Number(headers.get("retry-after") ?? Number.NaN);
    return new ApiError(status, error, seconds >= 0 ? seconds : undefined);
  }
}

function readErrorBody(text: string): ErrorBody | undefined {
  try {
    const error = JSON.parse(text)?.error;
    return typeof error?.code === "string" && typeof error.message === "string" ? error : undefined;
  } catch {
    return undefined;
  }
}

/** The service is not reachable, or the response is not from it. */
export class NetworkError extends Error {
  override readonly name = "NetworkError";

  static of(error: unknown, origin: string, timeoutSeconds: number): NetworkError {
    // A caller's own `fetch` may throw one with a better message.
    if (error instanceof NetworkError) return error;
    const { name, cause } = error as Error & { cause?: { code?: string } };
    if (name === "TimeoutError") {
      return new NetworkError(`No complete response from ${origin} within ${timeoutSeconds} seconds.`, {
        cause: error,
      });
    }
    return new NetworkError(`Could not reach ${origin}${cause?.code ? ` (${cause.code})` : ""}.`, { cause: error });
  }
}
