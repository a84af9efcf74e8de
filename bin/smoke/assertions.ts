import * as z from "zod/mini";
import { type ErrorCode, statusByCode } from "../../functions/platform/errors.ts";
import { CheckFailed } from "./findings.ts";
import type { StageResponse } from "./stage-client.ts";

/* Assertions on the responses of a stage. */

/** @throws CheckFailed unless the response has this status */
export function expectStatus(response: StageResponse, status: number): void {
  if (response.status !== status)
    throw new CheckFailed(`${response.request}: expected ${status}, got ${describeResponse(response)}`);
}

/** @throws CheckFailed unless the response is the error with this code, in the shape of all errors */
export function expectError(response: StageResponse, code: ErrorCode): z.output<typeof errorBody> {
  const status = statusByCode[code];
  const parsed = z.safeParse(errorBody, response.json);
  if (response.status !== status || !parsed.success || parsed.data.error.code !== code) {
    throw new CheckFailed(`${response.request}: expected ${status} ${code}, got ${describeResponse(response)}`);
  }
  return parsed.data;
}

const errorBody = z.object({
  error: z.object({
    code: z.string(),
    message: z.string().check(z.minLength(1)),
    request_id: z.string().check(z.minLength(1)),
    details: z.optional(z.array(z.object({ path: z.string(), message: z.string() }))),
  }),
});

/**
 * Returns the `data` of a response.
 * @throws CheckFailed unless status and schema match; the message names the first field that does not
 */
export function expectData<Schema extends z.ZodMiniType>(
  response: StageResponse,
  status: number,
  schema: Schema,
): z.output<Schema> {
  expectStatus(response, status);
  const parsed = z.safeParse(z.object({ data: schema }), response.json);
  if (parsed.success) return (parsed.data as { data: z.output<Schema> }).data;
  // The path alone: the value may be a secret.
  const path = parsed.error.issues[0]?.path.map(String).join(".") || "the body";
  throw new CheckFailed(`${response.request}: ${path} is missing or does not have the documented form`);
}

/** @throws CheckFailed unless the response is a 204, which has no body by definition (RFC 9110) */
export function expectNoContent(response: StageResponse): void {
  expectStatus(response, 204);
}

/** @throws CheckFailed with this message if the condition is false */
export function assert(condition: boolean, message: string): asserts condition {
  if (!condition) throw new CheckFailed(message);
}

function describeResponse({ status, headers, excerpt }: StageResponse): string {
  const location = headers.get("location");
  if (status >= 300 && status < 400 && location !== null) return `${status}, a redirect to ${location}`;
  return `${status} ${excerpt === "" ? "with an empty body" : excerpt}`;
}
