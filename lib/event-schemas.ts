import { type Schema, Validator } from "@cfworker/json-schema";
import { Ajv2020 } from "ajv/dist/2020.js";
import addFormats from "ajv-formats";
import { type OwnEvent, ownEventsProblem } from "../functions/foundation/manifest/events.ts";

/**
 * Checks the events of a stage where they are configured, with their schemas: the functions interpret a schema, and
 * would find a mistake in it only when an event arrives.
 * @returns the first broken rule; undefined = none
 */
export function eventsProblem(value: unknown): string | undefined {
  const problem = ownEventsProblem(value);
  if (problem !== undefined) return problem;
  const ajv = addFormats.default(
    new Ajv2020({ strict: true, strictTypes: false, strictTuples: false, strictRequired: false }),
  );
  // Of OpenAPI 3.0: the functions do not know it, and would refuse null.
  ajv.removeKeyword("nullable");
  for (const { name, data = {} } of value as OwnEvent[]) {
    try {
      ajv.compile(data);
      // As the functions do, which know no references to other schemas, and never end with one to itself.
      new Validator(data as Schema, "2020-12", false).validate({});
    } catch (error) {
      return `"${name}": data is not a valid JSON Schema: ${(error as Error).message}.`;
    }
  }
  return undefined;
}
