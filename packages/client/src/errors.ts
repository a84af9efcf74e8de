import type { components } from "./schema.d.ts";

export interface ErrorDetail {
  /** Which field, `events.0`; empty for the whole body. */
  path: string;
  message: string;
}

/** The codes of the API. An answer of a later version may have another. */
export type ErrorCode =
  components["responses"][keyof components["responses"]]["content"]["application/json"]["error"]["code"];

interface Refusal {
  code: string;
  message: string;
  request_id: string;
  details?: ErrorDetail[];
}

/** The service has refused, and says why. */
export class ApiError extends Error {
  override readonly name = "ApiError";
  readonly status: number;
  readonly code: ErrorCode | (string & {});
  readonly requestId: string;
  /** What is wrong with the input; empty unless the code is `validation_error`. */
  readonly details: ErrorDetail[];
  /** How long to wait before the next try; undefined where waiting does not help. */
  readonly retryAfterSeconds: number | undefined;

  constructor(status: number, { code, message, request_id, details = [] }: Refusal, retryAfterSeconds?: number) {
    super(message);
    this.status = status;
    this.code = code;
    this.requestId = request_id;
    this.details = details;
    this.retryAfterSeconds = retryAfterSeconds;
  }

  /** @returns undefined when the answer is no refusal of this API */
  static of({ status, headers, text }: { status: number; headers: Headers; text: string }): ApiError | undefined {
    const error = status >= 400 ? refusalIn(text) : undefined;
    if (!error) return undefined;
    const seconds = Number(headers.get("retry-after") ?? Number.NaN);
    return new ApiError(status, error, seconds >= 0 ? seconds : undefined);
  }
}

function refusalIn(text: string): Refusal | undefined {
  try {
    const error = JSON.parse(text)?.error;
    return typeof error?.code === "string" && typeof error.message === "string" ? error : undefined;
  } catch {
    return undefined;
  }
}

/** The service was not reached, or what came back is not from it. */
export class NetworkError extends Error {
  override readonly name = "NetworkError";

  static of(error: unknown, origin: string, timeoutSeconds: number): NetworkError {
    // A caller's own `fetch` may throw one with a better message.
    if (error instanceof NetworkError) return error;
    const { name, cause } = error as Error & { cause?: { code?: string } };
    if (name === "TimeoutError") {
      return new NetworkError(`${origin} gave no complete answer within ${timeoutSeconds} seconds.`, { cause: error });
    }
    return new NetworkError(`${origin} is not reached${cause?.code ? ` (${cause.code})` : ""}.`, { cause: error });
  }
}
