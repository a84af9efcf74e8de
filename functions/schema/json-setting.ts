import type * as z from "zod/mini";
import { SettingError } from "../platform/errors.ts";
import { parse } from "./input.ts";

/**
 * Parses a setting that is JSON.
 * @param example a valid value, for the error
 * @throws SettingError that names the setting and each violated rule
 */
export const parseJsonSetting = <Schema extends z.ZodMiniType>(
  name: string,
  text: string,
  schema: Schema,
  example: string,
): z.output<Schema> => readJsonSetting(name, text, (value) => parse(schema, value), example);

/** The same with rules that a schema cannot express. @param read throws an error whose message names each violated rule */
export function readJsonSetting<Value>(
  name: string,
  text: string,
  read: (value: unknown) => Value,
  example: string,
): Value {
  try {
    return read(JSON.parse(text));
  } catch (error) {
    const reason = error instanceof SyntaxError ? "It is not JSON." : String(Object(error).message);
    throw new SettingError(`${name} cannot be used. ${reason} Example: ${example}`);
  }
}
