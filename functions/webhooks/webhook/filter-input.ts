import * as z from "zod/mini";
import { printableText, setOf } from "../../foundation/schema/input.ts";
import { fieldsProblem, filterLimits, valueProblem } from "./event-filter.ts";

const { fields, nameCharacters, values, valueCharacters, bytes } = filterLimits;

const filterValue = printableText.check(
  z.superRefine((text, context) => {
    const message = valueProblem(text);
    if (message !== undefined) context.addIssue({ code: "custom", message });
  }),
  z.meta({ minLength: 1, maxLength: valueCharacters }),
);

/** The filter of a webhook as users write it: fields of an event's `data`, each with its values. */
export const filterInput = z.pipe(
  // Before the values, so that a hostile body has one error and not one for each of its fields.
  z.transform((input: unknown, { issues }) => {
    const message = problemOfFields(input);
    if (message !== undefined) issues.push({ code: "custom", message, input });
    return input;
  }),
  z.catchall(z.object({}), setOf(filterValue, values)).check(
    z.refine(
      // Each event reads the rows of all webhooks of its project, so a filter must not make them large.
      (filter) => Buffer.byteLength(JSON.stringify(filter)) <= bytes,
      `must have at most ${bytes} bytes as JSON`,
    ),
    z.meta({
      minProperties: 1,
      maxProperties: fields,
      propertyNames: { type: "string", minLength: 1, maxLength: nameCharacters },
    }),
  ),
);

function problemOfFields(input: unknown): string | undefined {
  if (typeof input !== "object" || input === null || Array.isArray(input)) {
    return "must be an object with a list of values for each field";
  }
  return fieldsProblem(Object.keys(input));
}
