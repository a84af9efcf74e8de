import { ApiError } from "../../functions/foundation/platform/errors.ts";
import { parse } from "../../functions/foundation/schema/input.ts";
import { UsageError } from "./command.ts";

/**
 * Checks the input of a function that a program calls.
 * @param optionByField the option that sets each field, such as `--user`
 * @throws UsageError that names the option of the first invalid field
 */
export function checkInput(
  schema: Parameters<typeof parse>[0],
  input: object,
  optionByField: Record<string, string>,
): void {
  try {
    parse(schema, input);
  } catch (error) {
    const [first] = error instanceof ApiError ? (error.details ?? []) : [];
    if (first === undefined) throw error;
    throw new UsageError(`${optionByField[first.path]} ${first.message}.`);
  }
}
