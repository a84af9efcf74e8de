import type * as z from "zod/mini";
import { SettingError } from "../platform/errors.ts";
import { parse } from "./input.ts";

/**
 * Parses a setting that is JSON.
 * @param example a valid value, for the error
 * @throws SettingError that names the setting and each violated rule
 */
export function parseJsonSetting<Schema extends z.ZodMiniType>(
  name: string,
  text: string,
  schema: Schema,
  example: string,
): z.output<Schema> {
  try {
    return parse(schema, JSON.parse(text));
  } catch (error) {
    const reason = error instanceof SyntaxError ? "It is not JSON." : String(Object(error).message);
    throw new SettingError(`${name} cannot be used. ${reason} Example: ${example}`);
  }
}
