import fc from "fast-check";
import * as z from "zod/mini";
import { parseJsonExactly } from "../../../../functions/foundation/events/deployment-event.ts";
import {
  compareFields,
  type EventFilter,
  filterProblem,
  receives,
} from "../../../../functions/webhooks/webhook/event-filter.ts";
import { filterInput } from "../../../../functions/webhooks/webhook/filter-input.ts";
import { portableJson } from "../../../../packages/client/src/exact-json.ts";

const events = ["deploy.failed"];
/** @param data the fields of the event as JSON */
const isReceived = (filter: EventFilter | undefined, data: string, event = "deploy.failed") =>
  receives({ events, filter }, { event, data: Object(parseJsonExactly(data)) });

test("without a filter, a webhook receives the events that it lists, and no others", () => {
  expect(isReceived(undefined, "{}")).toBe(true);
  expect(isReceived(undefined, "{}", "deploy.started")).toBe(false);
  expect(isReceived({ branch: ["*"] }, '{"branch":"main"}', "deploy.started")).toBe(false);
});

test.each<[boolean, string, EventFilter, string]>([
  [true, "the value is equal", { branch: ["main"] }, '{"branch":"main"}'],
  [false, "the case differs", { branch: ["Main"] }, '{"branch":"main"}'],
  [false, "it only begins with the value", { branch: ["main"] }, '{"branch":"main2"}'],
  [true, "one of several values is equal", { branch: ["main", "next"] }, '{"branch":"next"}'],
  [true, "a value with * is its beginning", { branch: ["release/*"] }, '{"branch":"release/2"}'],
  [true, "nothing follows where the * is", { branch: ["release/*"] }, '{"branch":"release/"}'],
  [false, "a value with * is longer", { branch: ["release/*"] }, '{"branch":"release"}'],
  [true, "* alone has any value, also an empty one", { branch: ["*"] }, '{"branch":""}'],
  [false, "* alone has no value", { branch: ["*"] }, "{}"],
  [true, "all fields match", { a: ["1"], b: ["2"] }, '{"a":"1","b":"2","c":"3"}'],
  [false, "one field does not match", { a: ["1"], b: ["2"] }, '{"a":"1","b":"3"}'],
  [false, "one field is missing", { a: ["1"], b: ["2"] }, '{"a":"1"}'],
  [true, "a number is equal as text", { pr: ["42"] }, '{"pr":42}'],
  [true, "a number is equal as it is written", { version: ["1.50"] }, '{"version":1.50}'],
  [false, "a number is written in another way", { version: ["1.5"] }, '{"version":1.50}'],
  [true, "a number that a double cannot hold is equal", { id: ["9007199254740993"] }, '{"id":9007199254740993}'],
  [false, "only its rounded value is equal", { id: ["9007199254740992"] }, '{"id":9007199254740993}'],
  [true, "true is the text true", { canary: ["true"] }, '{"canary":true}'],
  [false, "null is no text", { branch: ["null", "*"] }, '{"branch":null}'],
  [false, "the value is in a list", { branch: ["main", "*"] }, '{"branch":["main"]}'],
  [false, "the value is in an object", { branch: ["main", "*"] }, '{"branch":{"rawJSON":"main"}}'],
  [false, "a field is inherited", { constructor: ["*"] }, "{}"],
  [true, "a field has an inherited name", { constructor: ["x"] }, '{"constructor":"x"}'],
  [true, "a name with a point is one name", { "git.branch": ["main"] }, '{"git.branch":"main"}'],
  [false, "a name with a point is no path", { "git.branch": ["main"] }, '{"git":{"branch":"main"}}'],
])("an event is received: %s, if %s", (expected, _, filter, data) => {
  expect(isReceived(filter, data)).toBe(expected);
  // As the command line parses events on Node 20.
  expect(receives({ events, filter }, { event: "deploy.failed", data: Object(portableJson.parse(data)) })).toBe(
    expected,
  );
});

test("filterProblem names a rule exactly for the filters that the API rejects", () => {
  const word = fc.oneof(
    fc.constantFrom("", "a*", "*a", "**", "constructor", "__proto__", "é".repeat(101)),
    fc.string(),
  );
  const values = fc.array(fc.oneof(word, fc.constant("x".repeat(256))), { minLength: 1, maxLength: 22 });
  const fields = fc.array(fc.tuple(word, values), { maxLength: 6 });
  const large = [["a", Array.from({ length: 20 }, (_, index) => `${index}${"x".repeat(250)}`)]] as [string, string[]][];
  fc.assert(
    fc.property(fields, (pairs) => {
      const filter = Object.fromEntries(pairs);
      expect(filterProblem(filter) === undefined).toBe(z.safeParse(filterInput, filter).success);
    }),
    { examples: [[large], [[["branch", ["main"]]]], [[["a", Array(21).fill("x")]]]] },
  );
});

test("compareFields returns for each field the value of the event and the value that it matches", () => {
  const filter = { branch: ["main", "release/*"], environment: ["production"], region: ["eu"] };
  expect(compareFields(filter, { branch: "release/2", environment: "staging", region: null })).toEqual([
    { field: "branch", value: "release/2", match: "release/*" },
    { field: "environment", value: "staging", match: undefined },
    { field: "region", value: undefined, match: undefined },
  ]);
});

/** A value of `data` as JSON, and the text that a filter compares; undefined = it matches nothing. */
const values = fc.oneof(
  fc.constantFrom("production", "Production", "prod", "", "release/1.2", "release/", "42", "é*").map((text) => ({
    json: JSON.stringify(text),
    text,
  })),
  fc.constantFrom("42", "1.50", "-0", "1e3", "9007199254740993", "true", "false").map((json) => ({ json, text: json })),
  fc.constantFrom("null", "[]", '["prod"]', "{}", '{"rawJSON":"42"}').map((json) => ({ json, text: undefined })),
);
/** Also names that objects inherit. */
const fields = fc.constantFrom("environment", "a.b", "constructor", "__proto__", "toString", "", "é");
const patterns = fc.constantFrom(
  "prod*",
  "production",
  "*",
  "release/*",
  "4*",
  "42",
  "1.5",
  "1.50",
  "true",
  "é*",
  "Prod",
);

test("decisions about generated events are those of regular expressions", () => {
  const filters = fc.dictionary(fields, fc.array(patterns, { minLength: 1, maxLength: 5 }), { minKeys: 1, maxKeys: 3 });
  const events = fc.uniqueArray(fc.tuple(fields, values), { selector: ([field]) => field });
  const regExpOf = (pattern: string) =>
    new RegExp(`^${pattern.replace(/\*$/, "").replaceAll(/[.*/]/g, "\\$&")}${pattern.endsWith("*") ? "[^]*" : ""}$`);
  let received = 0;
  fc.assert(
    fc.property(filters, events, (filter, event) => {
      const texts = new Map<string, string | undefined>(event.map(([field, { text }]) => [field, text]));
      const expected = Object.entries(filter).every(([field, given]) => {
        const text = texts.get(field);
        return text !== undefined && given.some((pattern) => regExpOf(pattern).test(text));
      });
      if (expected) received += 1;
      expect(isReceived(filter, `{${event.map(([field, { json }]) => `${JSON.stringify(field)}:${json}`)}}`)).toBe(
        expected,
      );
    }),
    { numRuns: 5_000 },
  );
  expect(received).toBeGreaterThan(100);
});
