import * as z from "zod/mini";
import type { ErrorCode, ErrorDetail } from "../../functions/foundation/platform/errors.ts";

/*
 * Schemas of response bodies. docs/openapi.json is generated from them, and the tests validate every response against
 * it.
 */

/** One schema per field of a response. Does not compile when the code returns other fields or other types. */
export type FieldsOf<Body> = { [Name in keyof Body]-?: z.ZodMiniType<Body[Name]> };

interface TextRules {
  /** A regular expression. */
  pattern?: string;
  format?: "date-time" | "uuid";
}

export const text = (description: string, rules: TextRules = {}) => z.string().check(z.meta({ description, ...rules }));

export const id = (description: string) => text(description, { format: "uuid" });

/** A point in time, ISO 8601 in UTC. */
export const instant = (description: string) => text(description, { format: "date-time", pattern: "Z$" });

/**
 * Pattern of http(s) URLs, which are returned exactly as they were entered. JSON Schema has no case-insensitive flag.
 */
export const HTTP_URL_PATTERN = "^[Hh][Tt][Tt][Pp][Ss]?://";

/** A whole number of zero or more. */
export const count = (description: string) => z.int().check(z.minimum(0), z.describe(description));

export const flag = (description: string) => z.boolean().check(z.describe(description));

/** An enum. `meanings` documents each value and does not compile while a value is missing. */
export function oneOf<Text extends string>(description: string, meanings: Record<Text, string>) {
  const lines = Object.entries(meanings).map(([name, meaning]) => `- \`${name}\`: ${meaning}`);
  const [first, ...others] = Object.keys(meanings) as Text[];
  return z.enum([first as Text, ...others]).check(z.describe([description, "", ...lines].join("\n")));
}

const detail = z.strictObject({
  path: text("Path of the field, for example `events.0`; empty for the whole body."),
  message: text("The rule that the field violates."),
} satisfies FieldsOf<ErrorDetail>);

const codesWithDetails: ErrorCode[] = ["validation_error", "already_created"];

/** The body of an error response with one of these codes. */
export const errorResponseSchema = (codes: readonly [ErrorCode, ...ErrorCode[]]) =>
  z.strictObject({
    error: z.strictObject({
      code: z.enum(codes).check(z.describe("Error code for programs. Part of the API.")),
      message: text("Error message for people. May change."),
      request_id: id("Id of the request, also in the header `x-request-id`."),
      ...(codes.some((code) => codesWithDetails.includes(code)) && {
        details: z
          .optional(z.array(detail))
          .check(z.describe("One entry for each invalid field of the input; for `already_created`, the id.")),
      }),
    }),
  });
