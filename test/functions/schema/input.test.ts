import type * as z from "zod/mini";
import { displayName, fields, isoTime, isTime, parse, userId, uuid } from "../../../functions/schema/input.ts";

test.each([
  ["UTC", "2026-01-31T09:30:00Z", true],
  ["lower case", "2026-01-31t09:30:00z", true],
  ["a fraction of a second", "2026-01-31T09:30:00.123456789Z", true],
  ["an offset", "2026-01-31T09:30:00+05:30", true],
  ["an offset across midnight", "2026-01-31T23:30:00-01:00", true],
  ["February 29 of a leap year", "2028-02-29T00:00:00Z", true],
  ["February 29 of another year", "2026-02-29T00:00:00Z", false],
  ["February 30", "2026-02-30T00:00:00Z", false],
  ["April 31", "2026-04-31T00:00:00Z", false],
  ["day 0", "2026-01-00T00:00:00Z", false],
  ["month 13", "2026-13-01T00:00:00Z", false],
  ["hour 25", "2026-01-31T25:00:00Z", false],
  ["no time zone", "2026-01-31T09:30:00", false],
  ["an offset without a colon", "2026-01-31T09:30:00+0530", false],
  ["no seconds", "2026-01-31T09:30Z", false],
  ["a date", "2026-01-31", false],
  ["a year of five digits", "12026-01-31T09:30:00Z", false],
  ["a leading space", " 2026-01-31T09:30:00Z", false],
  ["a trailing newline", "2026-01-31T09:30:00Z\n", false],
  ["epoch seconds", "1769851800", false],
  ["an empty string", "", false],
])("isTime for %s: %s is %s", (_title, text, expected) => {
  expect(isTime(text)).toBe(expected);
});

test("isoTime returns a Date, and uuid a UUID in lower case", () => {
  const schema = fields({ at: isoTime, id: uuid });
  const id = "0b0e7d53-3a3e-4b5a-9c7e-2f1d8f0a6c11";
  expect(parse(schema, { at: "2026-01-31T10:30:00+01:00", id: id.toUpperCase() })).toEqual({
    at: new Date("2026-01-31T09:30:00.000Z"),
    id,
  });
});

test.each<[string, z.ZodMiniType, unknown, string]>([
  ["a time that is missing", isoTime, undefined, "is required"],
  ["a time that is a number", isoTime, 1769851800, "must be an ISO 8601 time"],
  [
    "a time without a time zone",
    isoTime,
    "2026-01-31T09:30:00",
    "must be an ISO 8601 time with a time zone, for example 2026-01-31T09:30:00Z",
  ],
  ["a UUID that is missing", uuid, undefined, "is required"],
  ["a UUID that is a number", uuid, 1, "must be a UUID"],
  ["a UUID with braces", uuid, "{0b0e7d53-3a3e-4b5a-9c7e-2f1d8f0a6c11}", "must be a UUID"],
  ["a name of 101 characters", displayName, "x".repeat(101), "must be at most 100 characters long"],
  ["a user id of 256 characters", userId, "x".repeat(256), "must have 1 to 255 characters"],
  ["a user id with a newline", userId, "user\n", "must not contain control characters"],
  ["a user id with an escape character", userId, "user\u001b[2J", "must not contain control characters"],
  ["a user id with a quote", userId, 'user"1', 'must not contain " or \\'],
  ["a user id with a backslash", userId, "user\\1", 'must not contain " or \\'],
  ["a blank user id", userId, " ", "must have 1 to 255 characters"],
])("parse throws for %s", (_title, schema, value, message) => {
  expect(() => parse(fields({ field: schema }), { field: value })).toThrow(
    expect.objectContaining({
      code: "validation_error",
      message: `The input is not valid: field ${message}.`,
      details: [{ path: "field", message }],
    }),
  );
});

test("parse accepts a name of 100 and a user id of 255 characters", () => {
  const input = { name: "x".repeat(100), user: "u".repeat(255) };
  expect(parse(fields({ name: displayName, user: userId }), input)).toEqual(input);
});

test("parse reports the first 60 characters of the first unknown field only", () => {
  const unknown = { ["k".repeat(5_000)]: 1, other: 2 };
  expect(() => parse(fields({ name: displayName }), { name: "ci", ...unknown })).toThrow(
    expect.objectContaining({ details: [{ path: "k".repeat(60), message: "is not a known field" }] }),
  );
});

test("parse reports a body that is not an object with an empty path", () => {
  expect(() => parse(fields({ name: displayName }), [])).toThrow(
    expect.objectContaining({
      message: "The input is not valid: the body must be a JSON object.",
      details: [{ path: "", message: "must be a JSON object" }],
    }),
  );
});
