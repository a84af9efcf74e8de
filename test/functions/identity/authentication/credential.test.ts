import { readCredential } from "../../../../functions/identity/authentication/credential.ts";

const hex = "0123456789abcdef".repeat(4);

test.each([
  ["an API key", `Bearer svc_${hex}`, { authType: "api_key", token: `svc_${hex}` }],
  ["a malformed API key with the prefix svc_", "Bearer svc_x", { authType: "api_key", token: "svc_x" }],
  ["a partner key as a JWT", `Bearer svcp_${hex}`, { authType: "jwt", token: `svcp_${hex}` }],
  ["SVC_ in upper case as a JWT", "Bearer SVC_x", { authType: "jwt", token: "SVC_x" }],
  ["svc without the underscore as a JWT", "Bearer svc", { authType: "jwt", token: "svc" }],
  ["a JWT", "Bearer a.b-_.c", { authType: "jwt", token: "a.b-_.c" }],
  ["all characters of RFC 6750", "Bearer aZ09._~+/-=", { authType: "jwt", token: "aZ09._~+/-=" }],
  ["the scheme in lower case", "bearer token", { authType: "jwt", token: "token" }],
  ["the scheme in upper case", "BEARER token", { authType: "jwt", token: "token" }],
  ["several spaces", "Bearer    token", { authType: "jwt", token: "token" }],
  ["trailing spaces", "Bearer token  ", { authType: "jwt", token: "token" }],
])("reads %s", (_title, value, expected) => {
  expect(readCredential({ Authorization: [value] })).toMatchObject(expected);
});

test.each(["authorization", "AUTHORIZATION", "Authorization"])("reads the header under the name %s", (name) => {
  expect(readCredential({ [name]: ["Bearer token"] })).toMatchObject({ authType: "jwt", token: "token" });
});

test.each([
  ["an empty value", ""],
  ["a space", " "],
  ["the scheme only", "Bearer"],
  ["the scheme and a space", "Bearer "],
  ["no scheme", "token"],
  ["an API key without a scheme", `svc_${hex}`],
  ["no space after the scheme", "Bearertoken"],
  ["a colon after the scheme", "Bearer: token"],
  ["a tab after the scheme", "Bearer\ttoken"],
  ["a leading space", " Bearer token"],
  ["a trailing newline", "Bearer token\n"],
  ["a newline inside", "Bearer token\nX-Header: 1"],
  ["two tokens", "Bearer one two"],
  ["two credentials in one value", "Bearer one, Bearer two"],
  ["a trailing comma", "Bearer one,"],
  ["a quoted token", 'Bearer "token"'],
  ["Unicode", "Bearer tökèn"],
  ["NUL", "Bearer token\0"],
  ["Basic", "Basic dXNlcjpwYXNzd29yZA=="],
  ["Digest", 'Digest username="user"'],
  ["an unknown scheme", "Token token"],
])("reads nothing from %s", (_title, value) => {
  expect(readCredential({ Authorization: [value] })).toBeUndefined();
});

test.each([
  ["no headers", {}],
  ["other headers", { "X-Authorization": ["Bearer token"], "Proxy-Authorization": ["Bearer token"] }],
  ["a header without a value", { Authorization: [] }],
  ["an undefined header", { Authorization: undefined }],
  ["two values", { Authorization: ["Bearer one", "Bearer two"] }],
  ["the same value twice", { Authorization: ["Bearer one", "Bearer one"] }],
  ["a valid and an empty value", { Authorization: ["Bearer one", ""] }],
  ["two headers whose names differ in case", { Authorization: ["Bearer one"], authorization: ["Bearer one"] }],
])("reads nothing from %s", (_title, headers) => {
  expect(readCredential(headers)).toBeUndefined();
});

test("reads a header full of spaces in linear time", () => {
  // Quadratic time would be about a minute, linear time is milliseconds.
  const spaces = " ".repeat(300_000);
  const started = performance.now();
  expect(readCredential({ Authorization: [`Bearer ${spaces}!`] })).toBeUndefined();
  expect(readCredential({ Authorization: [`Bearer x${spaces}!`] })).toBeUndefined();
  expect(performance.now() - started).toBeLessThan(10_000);
});
