import { nativeJson, portableJson } from "../../../packages/client/src/exact-json.ts";

describe.each([
  ["with JSON.rawJSON", nativeJson],
  ["for Node 20", portableJson],
])("exact JSON %s", (_, { parse, stringify, isExactNumber }) => {
  test.each([
    "9007199254740993",
    "-12345678901234567890",
    "0.30000000000000000001",
    "1.50",
    "1e400",
    "-0",
    '{"a":[1,9007199254740993,{"b":2.10}],"c":"9007199254740993"}',
    '{"9007199254740993":"\\"1.50\\" \\\\"}',
  ])("stringify returns the parsed text %s", (text) => {
    expect(stringify(parse(text))).toBe(text);
  });

  test("stringify indents", () => {
    expect(stringify(parse('{"n":9007199254740993}'), 2)).toBe('{\n  "n": 9007199254740993\n}');
    expect(stringify(parse("[1.50]"), "\t")).toBe("[\n\t1.50\n]");
  });

  test("isExactNumber accepts only numbers that a double cannot hold", () => {
    expect(isExactNumber(parse("9007199254740993"))).toBe(true);
    for (const value of [parse("1"), "9007199254740993", null, {}, []]) expect(isExactNumber(value)).toBe(false);
  });

  test("parse throws a SyntaxError for invalid JSON", () => {
    for (const text of ["", "{", "01", "1.", "[1,]", "'a'"]) expect(() => parse(text)).toThrow(SyntaxError);
  });
});

test("JSON.stringify of a portable exact number returns a rounded number", () => {
  expect(JSON.stringify(portableJson.parse("[9007199254740993]"))).toBe("[9007199254740992]");
});
