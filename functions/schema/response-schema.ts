import * as z from "zod/mini";
import type { ErrorCode, ErrorDetail } from "../platform/errors.ts";

/*
 * What answers are made of, as schemas: docs/openapi.json is generated from them, and every answer is held against it in
 * the tests. No function loads them: an answer is right because the code that makes it is.
 */

/** One schema for each field of an answer. Does not compile when the code makes another field, or another type of it. */
export type FieldsOf<Answer> = { [Name in keyof Answer]-?: z.ZodMiniType<Answer[Name]> };

interface TextRules {
  /** A regular expression. */
  pattern?: string;
  format?: "date-time" | "uuid";
}

export const text = (description: string, rules: TextRules = {}) => z.string().check(z.meta({ description, ...rules }));

export const id = (description: string) => text(description, { format: "uuid" });

/** A point in time, ISO 8601 in UTC. */
export const instant = (description: string) => text(description, { format: "date-time", pattern: "Z$" });

/** How URLs begin, which are shown as they were given. JSON Schema's expressions have no flag for either case. */
export const WEB_ADDRESS = "^[Hh][Tt][Tt][Pp][Ss]?://";

/** A whole number of zero or more. */
export const count = (description: string) => z.int().check(z.minimum(0), z.describe(description));

export const flag = (description: string) => z.boolean().check(z.describe(description));

/** One of these texts. `meanings` says what each stands for, and does not compile while one is missing. */
export function oneOf<Text extends string>(description: string, meanings: Record<Text, string>) {
  const lines = Object.entries(meanings).map(([name, meaning]) => `- \`${name}\`: ${meaning}`);
  const [first, ...others] = Object.keys(meanings) as Text[];
  return z.enum([first as Text, ...others]).check(z.describe([description, "", ...lines].join("\n")));
}

const detail = z.strictObject({
  path: text("Which field, `events.0`; empty for the whole body."),
  message: text("What is wrong with it."),
} satisfies FieldsOf<ErrorDetail>);

/** The body of an error with one of these codes. */
export const errorResponseSchema = (codes: readonly [ErrorCode, ...ErrorCode[]]) =>
  z.strictObject({
    error: z.strictObject({
      code: z.enum(codes).check(z.describe("What is wrong, for programs. Part of the API.")),
      message: text("What is wrong, for people. May change."),
      request_id: id("The id of the request, as in `x-request-id`."),
      ...(codes.includes("validation_error") && {
        details: z
          .optional(z.array(detail))
          .check(z.describe("One entry for each thing that is wrong with the input.")),
      }),
    }),
  });
