/*
 * Expressions of DynamoDB with their values. A name that stands behind `#` may be a reserved word.
 * https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Expressions.html
 */

/** A part of an expression with its values, made by `when`. */
export class Part {
  readonly texts: readonly string[];
  readonly values: readonly unknown[];

  constructor(texts: readonly string[], values: readonly unknown[]) {
    this.texts = texts;
    this.values = values;
  }
}

/**
 * Returns a condition: when`attribute_exists(id) AND #url = ${url}`. A value may be a part itself: when`${one} AND ${other}`.
 */
export const when = (texts: TemplateStringsArray, ...values: unknown[]): Part => new Part(texts, values);

/** A condition that is always true, to be left out of an expression. */
const always = new Part([""], []);

/** Joins the conditions that are given: all must be true. */
export function allOf(...parts: (Part | undefined | false)[]): Part {
  const given = parts.filter((part) => part !== undefined && part !== false);
  return given.length === 0 ? always : new Part(["", ...given.slice(1).map(() => " AND "), ""], given);
}

/** Returns the condition that an attribute has the value that was read; undefined = it did not exist. */
export const isAsRead = (attribute: string, value: unknown): Part =>
  value === undefined
    ? new Part([`attribute_not_exists(#${attribute})`], [])
    : new Part([`#${attribute} = `, ""], [value]);

/** Returns the condition that a counter, 0 while it does not exist, is at most a number. */
export const isAtMost = (attribute: string, max: number): Part =>
  new Part([`attribute_not_exists(#${attribute}) OR #${attribute} <= `, ""], [max]);

interface Change {
  /** By attribute. A value of `undefined` changes nothing; a part is the value that it computes. */
  set?: Record<string, unknown>;
  remove?: readonly string[];
  /** Numbers that are added to attributes. */
  add?: Record<string, number>;
  when?: Part;
}

interface Bound {
  ExpressionAttributeNames?: Record<string, string>;
  ExpressionAttributeValues?: Record<string, unknown>;
}

/** Returns the fields of an update of one item. */
export function changing({ set = {}, remove = [], add = {}, when: condition = always }: Change) {
  const binder = new Binder();
  const clauses = {
    SET: Object.entries(set).flatMap(([name, value]) =>
      value === undefined ? [] : `#${name} = ${binder.bind(value)}`,
    ),
    REMOVE: remove.map((name) => `#${name}`),
    ADD: Object.entries(add).map(([name, value]) => `#${name} ${binder.bind(value)}`),
  };
  const UpdateExpression = Object.entries(clauses)
    .flatMap(([verb, parts]) => (parts.length > 0 ? `${verb} ${parts.join(", ")}` : []))
    .join(" ");
  const ConditionExpression = binder.bind(condition);
  const used = binder.used(`${UpdateExpression} ${ConditionExpression}`);
  return { UpdateExpression, ...(ConditionExpression !== "" && { ConditionExpression }), ...used };
}

/** Returns the fields of a write that is made only if a condition is true. */
export function onlyIf(condition: Part): { ConditionExpression: string } & Bound {
  const binder = new Binder();
  const ConditionExpression = binder.bind(condition);
  return { ConditionExpression, ...binder.used(ConditionExpression) };
}

interface Selection {
  /** Which of the items that are read are returned; absent = all. */
  filter?: Part;
  /** Which attributes are returned; absent = all. */
  attributes?: readonly string[];
}

/** Returns the fields of a query that select items by their key. */
export function selecting(key: Part, { filter = always, attributes = [] }: Selection = {}) {
  const binder = new Binder();
  const KeyConditionExpression = binder.bind(key);
  const FilterExpression = binder.bind(filter);
  const ProjectionExpression = attributes.map((name) => `#${name}`).join(", ");
  const used = binder.used(`${KeyConditionExpression} ${FilterExpression} ${ProjectionExpression}`);
  return {
    KeyConditionExpression,
    ...(FilterExpression !== "" && { FilterExpression }),
    ...(ProjectionExpression !== "" && { ProjectionExpression }),
    ...used,
  };
}

class Binder {
  readonly #values: Record<string, unknown> = {};

  /** Returns a text that stands for a value, or that of a part with its values. */
  bind(value: unknown): string {
    if (value instanceof Part) {
      return value.texts
        .map((text, index) => text + (index < value.values.length ? this.bind(value.values[index]) : ""))
        .join("");
    }
    const name = `:v${Object.keys(this.#values).length}`;
    this.#values[name] = value;
    return name;
  }

  /** Returns the names and values that occur in a text. */
  used(text: string): Bound {
    const names = [...text.matchAll(/#(\w+)/g)].map(([placeholder, name = ""]) => [placeholder, name]);
    return {
      ...(names.length > 0 && { ExpressionAttributeNames: Object.fromEntries(names) }),
      ...(Object.keys(this.#values).length > 0 && { ExpressionAttributeValues: this.#values }),
    };
  }
}
