import * as z from "zod/mini";
import { type ErrorCode, statusByCode } from "../../functions/platform/errors.ts";
import { CheckFailed } from "./findings.ts";
import type { Answer } from "./stage-client.ts";

/* What the README promises about answers, and how a stage is held to it. */

/** @throws Unkept unless the answer has this status */
export function expectStatus(answer: Answer, status: number): void {
  if (answer.status !== status)
    throw new CheckFailed(`${answer.request}: wanted ${status}, got ${describeAnswer(answer)}`);
}

/** @throws Unkept unless the answer is the error with this code, in the shape of all errors */
export function expectError(answer: Answer, code: ErrorCode): z.output<typeof errorBody> {
  const status = statusByCode[code];
  const parsed = z.safeParse(errorBody, answer.json);
  if (answer.status !== status || !parsed.success || parsed.data.error.code !== code) {
    throw new CheckFailed(`${answer.request}: wanted ${status} ${code}, got ${describeAnswer(answer)}`);
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

/** The `data` of an answer. @throws Unkept unless status and shape are right; says where they are not */
export function expectData<Schema extends z.ZodMiniType>(
  answer: Answer,
  status: number,
  schema: Schema,
): z.output<Schema> {
  expectStatus(answer, status);
  const parsed = z.safeParse(z.object({ data: schema }), answer.json);
  if (parsed.success) return (parsed.data as { data: z.output<Schema> }).data;
  // Not what is there: it may be a secret.
  const where = parsed.error.issues[0]?.path.map(String).join(".") || "the body";
  throw new CheckFailed(`${answer.request}: ${where} is missing or not of the promised form`);
}

/** @throws Unkept unless the answer is 204 and empty */
export function expectNoContent(answer: Answer): void {
  expectStatus(answer, 204);
  if (answer.text !== "")
    throw new CheckFailed(`${answer.request}: wanted an empty body, got ${answer.text.length} characters`);
}

/** @throws Unkept with this message unless it holds */
export function assert(holds: boolean, message: string): asserts holds {
  if (!holds) throw new CheckFailed(message);
}

function describeAnswer({ status, headers, excerpt }: Answer): string {
  const location = headers.get("location");
  if (status >= 300 && status < 400 && location !== null) return `${status}, a redirect to ${location}`;
  return `${status} ${excerpt === "" ? "with an empty body" : excerpt}`;
}
