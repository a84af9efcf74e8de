import fc from "fast-check";
import type { Json } from "./api-contract.ts";

/* Random values that a JSON Schema of docs/openapi.json allows, and values that it does not allow. */

const characters = fc.constantFrom(
  ..."abcdefghijklmnopqrstuvwxyzABCDEFXYZ0123456789-_.,:;!?()/'\"\\<>&%#äßéñ世界🚀👩🏽",
);

// Not `webPath`, whose first call takes a second of CPU.
const paths = fc.stringMatching(/^(\/([\w.~!$&'()*+,;=:@-]|%[0-9A-F]{2}){0,9}){0,3}$/);

/** Generates values that the schema allows. They may violate rules that are not in the schema. */
export function valid(schema: Json): fc.Arbitrary<Json> {
  if (Object.keys(schema).length === 0) return fc.jsonValue();
  if (schema.const !== undefined) return fc.constant(schema.const);
  if (schema.enum) return fc.constantFrom(...schema.enum);
  if (Array.isArray(schema.type)) return fc.oneof(...schema.type.map((type: string) => valid({ ...schema, type })));
  switch (schema.type) {
    case "null":
      return fc.constant(null);
    case "string":
      return text(schema);
    case "integer":
      return fc.integer({ min: schema.minimum, max: schema.maximum });
    case "boolean":
      return fc.boolean();
    case "array":
      return fc.array(valid(schema.items), {
        minLength: schema.minItems ?? 0,
        maxLength: Math.min(schema.maxItems, 8),
      });
    case "object":
      return object(schema);
    default:
      throw new Error(`json-arbitrary.ts does not support ${JSON.stringify(schema)}.`);
  }
}

/** The smallest and the largest number or text that the schema allows: a documented limit must be the enforced one. */
export function boundaries({ type, format, pattern, minimum, maximum, minLength = 0, maxLength }: Json): Json[] {
  if (type === "integer") return [minimum, maximum];
  if (format !== undefined || maxLength === undefined) return [];
  // A limit counts characters, not the two UTF-16 units of some.
  if (pattern === undefined) return ["x".repeat(minLength), "x".repeat(maxLength), "🚀".repeat(maxLength)];
  return pattern.includes("://") ? ["https://hooks.example.com/".padEnd(maxLength, "x")] : [];
}

function text({ format, pattern, minLength = 0, maxLength = 100 }: Json): fc.Arbitrary<string> {
  if (format === "uuid") return fc.uuid();
  if (format === "date-time") {
    const times = { min: new Date("1970-01-01"), max: new Date("2100-01-01"), noInvalidDate: true };
    return fc.date(times).map((date) => date.toISOString());
  }
  if (pattern?.includes("://")) return paths.map((path) => `https://hooks.example.com${path}`);
  if (pattern !== undefined) return fc.stringMatching(new RegExp(pattern));
  return fc.array(characters, { minLength, maxLength: Math.floor(maxLength / 4) }).map((parts) => parts.join(""));
}

function object(schema: Json): fc.Arbitrary<Json> {
  const { properties, required = [], minProperties = 0, maxProperties, additionalProperties } = schema;
  if (additionalProperties) {
    const keys = fc.array(characters, { minLength: 1, maxLength: 25 }).map((parts) => parts.join(""));
    return fc.dictionary(keys, valid(additionalProperties), { minKeys: minProperties, maxKeys: maxProperties });
  }
  const fields = Object.fromEntries(Object.entries(properties).map(([name, schema]) => [name, valid(schema)]));
  return fc.record(fields, { requiredKeys: required }).filter((value) => Object.keys(value).length >= minProperties);
}

/** Generates values that violate the schema in one way: a wrong, missing or unknown field, or not an object. */
export function invalid(schema: Json): fc.Arbitrary<Json> {
  if (schema.type !== "object") return wrong(schema);
  const { properties, required = [] } = schema;
  const base = valid(schema);
  const names = Object.keys(properties);
  return fc.oneof(
    ...names.map((name) => fc.tuple(base, wrong(properties[name])).map(([value, bad]) => ({ ...value, [name]: bad }))),
    ...required.map((name: string) => base.map(({ [name]: _, ...rest }) => rest)),
    fc
      .tuple(base, fc.string(), fc.jsonValue())
      .filter(([, name]) => !names.includes(name) && name !== "__proto__")
      .map(([value, name, more]) => ({ ...value, [name]: more })),
    fc.constantFrom(null, [], "text", 7, true, [{}]),
  );
}

/** Generates values of another type, or out of bounds. */
function wrong(schema: Json): fc.Arbitrary<Json> {
  const { type, format, pattern, minimum, maximum, minLength, maxLength, minItems, maxItems, items, minProperties } =
    schema;
  const texts = fc.string().filter((text) => !schema.enum?.includes(text));
  const others: Record<string, fc.Arbitrary<Json>> = {
    boolean: fc.boolean(),
    integer: fc.integer(),
    array: fc.constantFrom([], [1], ["deploy.started", 1]),
    object: fc.constantFrom({}, { a: 1 }),
    null: fc.constant(null),
    string: texts,
  };
  for (const each of [type].flat()) {
    if (!(schema.enum || format || pattern) || each !== "string") delete others[each];
  }
  const outside = [
    ...(minimum === undefined ? [] : [minimum - 1, minimum + 0.5]),
    ...(maximum === undefined ? [] : [maximum + 1, 1e308]),
    ...(minLength ? ["x".repeat(minLength - 1)] : []),
    ...(maxLength === undefined
      ? []
      : [pattern ? `https://example.com/${"x".repeat(maxLength)}` : "x".repeat(maxLength + 1)]),
    ...(minItems ? [[]] : []),
    ...(minProperties ? [{}] : []),
    ...(maxItems === undefined ? [] : [new Array(maxItems + 1).fill(items.enum?.[0])]),
  ];
  return fc.oneof(...Object.values(others), ...outside.map((value) => fc.constant(value)));
}
