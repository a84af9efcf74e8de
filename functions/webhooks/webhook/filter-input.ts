import * as z from "zod/mini";
import { isPrintable, printableText, setOf } from "../../foundation/schema/input.ts";

const MAX_FIELDS = 5;
const MAX_VALUES = 20;
const MAX_NAME_CHARACTERS = 100;
const MAX_VALUE_CHARACTERS = 255;
/** Zod leaves out the first without an error, and DynamoDB's client rejects a map with the second. */
const unusableNames = ["__proto__", "constructor"];
/** Each event reads the rows of all webhooks of its project, so a filter must not make them large. */
const MAX_BYTES = 4096;

const filterValue = printableText.check(
  z.refine(
    (text) => text !== "" && [...text].length <= MAX_VALUE_CHARACTERS,
    `must have 1 to ${MAX_VALUE_CHARACTERS} characters`,
  ),
  z.refine((text) => !text.slice(0, -1).includes("*"), "must have * only at its end"),
  z.meta({ minLength: 1, maxLength: MAX_VALUE_CHARACTERS }),
);

/** The filter of a webhook as users write it: fields of an event's `data`, each with its values. */
export const filterInput = z.pipe(
  // Before the values, so that a hostile body has one error and not one for each of its fields.
  z.transform((input: unknown, { issues }) => {
    const message = problemOfFields(input);
    if (message !== undefined) issues.push({ code: "custom", message, input });
    return input;
  }),
  z.catchall(z.object({}), setOf(filterValue, MAX_VALUES)).check(
    z.refine(
      (filter) => Buffer.byteLength(JSON.stringify(filter)) <= MAX_BYTES,
      `must have at most ${MAX_BYTES} bytes as JSON`,
    ),
    z.meta({ minProperties: 1, maxProperties: MAX_FIELDS }),
  ),
);

function problemOfFields(input: unknown): string | undefined {
  if (typeof input !== "object" || input === null || Array.isArray(input)) {
    return "must be an object with a list of values for each field";
  }
  const names = Object.keys(input);
  if (names.length < 1 || names.length > MAX_FIELDS) return `must have 1 to ${MAX_FIELDS} fields, or be null`;
  const isName = (name: string) =>
    name !== "" && [...name].length <= MAX_NAME_CHARACTERS && isPrintable(name) && !unusableNames.includes(name);
  if (names.every(isName)) return undefined;
  return `must have fields with names of 1 to ${MAX_NAME_CHARACTERS} characters, without control characters, other than ${unusableNames.join(" and ")}`;
}
