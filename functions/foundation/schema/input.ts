import * as z from "zod/mini";
import { ApiError, type ErrorDetail } from "../platform/errors.ts";
import { canonicalUuid } from "../platform/uuid.ts";
import { escaped, firstUnseen, replaceUnseen } from "./unseen-text.ts";

/*
 * A rule that JSON Schema cannot express, or expresses with another message, is a `refine`; `meta` has the keywords that come
 * closest to it, for the OpenAPI document.
 */

/** The error option of a zod rule: "is required" for a missing value, `message` for an invalid one. */
export const orRequired = (message: string) => ({
  error: (issue: { input?: unknown }) => (issue.input === undefined ? "is required" : message),
});

/** An object with exactly these fields. An unknown field is an error, so that a typo is not silently ignored. */
export function fields<Shape extends z.core.$ZodShape>(shape: Shape) {
  return z.strictObject(shape, orRequired("must be a JSON object"));
}

/** What a text has no shape without: spaces, Braille's too, and what is not seen. */
const BLANK = /[\p{Z}\p{Default_Ignorable_Code_Point}\u2800]/gu;
const MAX_NAME_CHARACTERS = 100;

/**
 * Makes a text of a client safe to show: without control and invisible characters, well-formed, and not longer than a limit.
 * @param max characters (code points)
 */
export const shownText = (text: string, max: number): string =>
  [...replaceUnseen(text.toWellFormed(), () => "")].slice(0, max).join("");

const isSeen = z.refine<string>((text) => firstUnseen(text) === undefined, {
  // A reader cannot find the character without its code.
  error: ({ input }) =>
    `must not contain control or invisible characters: it has ${escaped(firstUnseen(String(input)) ?? "")}`,
  abort: true,
});

/** Text of any length that is valid Unicode, and of which a reader sees all. */
export const printableText = z.string(orRequired("must be a string")).check(
  z.refine((text) => text.isWellFormed(), "must be valid Unicode"),
  isSeen,
);

/** A name that the platform has stored. Spaces around it are removed. */
export const platformName = printableText.check(
  z.trim(),
  z.refine((text) => text.replaceAll(BLANK, "") !== "", "must not be blank"),
  z.refine((text) => [...text].length <= MAX_NAME_CHARACTERS, `must be at most ${MAX_NAME_CHARACTERS} characters long`),
  z.meta({ minLength: 1, maxLength: MAX_NAME_CHARACTERS }),
);

/**
 * A display name that a user chooses. Decoders replace bytes that are not UTF-8 with U+FFFD, such as an umlaut that PowerShell 5 sends in
 * Latin-1. The name would be lost without a word.
 */
export const displayName = platformName.check(
  z.refine(
    (text) => !text.includes("\uFFFD"),
    "must not contain U+FFFD, which replaces what is not UTF-8: send the body as UTF-8",
  ),
);

/** A list of at most `max` entries. */
export const listOf = <Item extends z.ZodMiniType>(item: Item, max: number) =>
  z.array(item, orRequired("must be an array")).check(z.maxLength(max, `must have at most ${max} entries`));

/**
 * A list of 1 to `max` different values. Duplicates are accepted and removed.
 * @param item schema of one value
 */
export const setOf = <Item extends z.ZodMiniType<string>>(item: Item, max: number) =>
  z.pipe(
    // Not with `refine`: zod checks these lengths before the entries.
    listOf(item, max).check(z.minLength(1, "must not be empty")),
    z.transform((items: z.output<Item>[]) => [...new Set(items)]),
  );

/** A UUID of any version. The output is in lower case. */
export const uuid = z.pipe(
  z.string(orRequired("must be a UUID")).check(
    z.refine((text) => canonicalUuid(text) !== undefined, "must be a UUID"),
    z.meta({ format: "uuid" }),
  ),
  z.transform((text: string) => text.toLowerCase()),
);

// RFC 3339. Seconds may carry a fraction of any length.
const TIME = /^(\d{4})-(\d\d)-(\d\d)T\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/i;

/** Returns whether a text is a valid RFC 3339 time. `Date.parse` alone reads February 30 as March 2. */
export function isTime(text: string): boolean {
  const [, year, month, day] = (TIME.exec(text) ?? []).map(Number);
  if (year === undefined || month === undefined || Number.isNaN(Date.parse(text))) return false;
  return new Date(Date.UTC(year, month - 1, day)).getUTCDate() === day;
}

/** A point in time in ISO 8601, as text. */
export const timeText = z
  .string(orRequired("must be an ISO 8601 time"))
  .check(
    z.refine(isTime, "must be an ISO 8601 time with a time zone, for example 2026-01-31T09:30:00Z"),
    z.meta({ format: "date-time" }),
  );

/** A point in time in ISO 8601. The output is a Date. */
export const isoTime = z.pipe(
  timeText,
  z.transform((text: string) => new Date(text)),
);

export const MAX_OVERLAP_SECONDS = 7 * 24 * 3600;
const DEFAULT_OVERLAP_SECONDS = 24 * 3600;
const overlapRule = `must be a whole number of seconds from 0 to ${MAX_OVERLAP_SECONDS}`;

/** The time for which a replaced secret stays valid beside the new one, up to a week. Default: a day. */
export const overlapSeconds = z._default(
  z.number(overlapRule).check(
    z.refine((n) => Number.isInteger(n) && n >= 0 && n <= MAX_OVERLAP_SECONDS, overlapRule),
    z.meta({ type: "integer", minimum: 0, maximum: MAX_OVERLAP_SECONDS }),
  ),
  DEFAULT_OVERLAP_SECONDS,
);

const MAX_USER_ID_CHARACTERS = 255;

/**
 * A user id of the identity provider. A DynamoDB partition key has at most 2,048 bytes; this limit stays well below. The access
 * log and scripts put the id between quotes without escaping it.
 */
export const userId = z.string(orRequired("must be a string")).check(
  z.refine(
    (text) => text.trim() !== "" && text.length <= MAX_USER_ID_CHARACTERS,
    `must have 1 to ${MAX_USER_ID_CHARACTERS} characters`,
  ),
  z.refine((text) => text.isWellFormed(), "must be valid Unicode"),
  // Not all of `isSeen`: users exist with these ids, and an id is compared, not read.
  z.refine(
    (text) => !/[\p{Cc}\p{Zl}\p{Zp}\u202A-\u202E\u2066-\u2069]/u.test(text),
    "must not contain control characters",
  ),
  z.refine((text) => !/["\\]/.test(text), 'must not contain " or \\'),
);

/**
 * Validates an input against a schema and returns the output of the schema.
 * @param kind what the entries of the input are, for the message about an unknown one
 * @throws ApiError `validation_error` with one detail for each violated rule, 20 details at most
 */
export function parse<Schema extends z.ZodMiniType>(schema: Schema, input: unknown, kind = "field"): z.output<Schema> {
  const result = z.safeParse(schema, input);
  if (result.success) return result.data;
  throw invalidInput(reportable(result.error.issues, kind));
}

/** Returns the error for a field whose rule a schema cannot express, because it depends on more than the input. */
export const invalidField = (path: string, message: string): ApiError => invalidInput([{ path, message }]);

function invalidInput(details: ErrorDetail[]): ApiError {
  const summary = details.map(({ path, message }) => `${path || "the body"} ${message}`).join("; ");
  return new ApiError("validation_error", `The input is not valid: ${summary}.`, { details });
}

const MAX_DETAILS = 20;
/** Of all details as JSON. The message of the error repeats them, and the result of an import has those of 1,000 rows. */
const MAX_DETAIL_BYTES = 4_000;

/** A hostile body may violate rules thousands of times. The first violation is always reported. */
function reportable(issues: z.core.$ZodIssue[], kind: string): ErrorDetail[] {
  let bytes = 0;
  return issues
    .slice(0, MAX_DETAILS)
    .map((issue) => toDetail(issue, kind))
    .filter((detail, index) => {
      bytes += Buffer.byteLength(JSON.stringify(detail));
      return index === 0 || bytes <= MAX_DETAIL_BYTES;
    });
}

const MAX_SHOWN_CHARACTERS = 60;

function toDetail(issue: z.core.$ZodIssue, kind: string): ErrorDetail {
  const path = issue.path.map(String);
  if (issue.code !== "unrecognized_keys") return { path: path.join("."), message: issue.message };
  // Report only the first unknown field: a hostile body may contain thousands of them, with long names.
  const [key = ""] = issue.keys;
  return { path: [...path, key.slice(0, MAX_SHOWN_CHARACTERS)].join("."), message: `is not a known ${kind}` };
}
