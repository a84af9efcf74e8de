import { SettingError } from "../../../../functions/foundation/platform/errors.ts";
import { workflowIssuers } from "../../../../functions/identity/trusted-workflows/workflow-issuers.ts";

/* The setting OIDC_ISSUERS. */

afterEach(() => {
  delete process.env.OIDC_ISSUERS;
  delete process.env.STAGE;
});

function parse(entries: unknown, isLocal = false) {
  process.env.OIDC_ISSUERS = typeof entries === "string" ? entries : JSON.stringify(entries);
  if (!isLocal) process.env.STAGE = "prod";
  return workflowIssuers();
}

test("without the setting there are no issuers", () => {
  delete process.env.OIDC_ISSUERS;
  expect(workflowIssuers()).toEqual([]);
});

test("github and gitlab stand for the public instances", () => {
  const audience = "https://api.example.com";
  expect(
    parse([
      { name: "github", audience },
      { name: "gitlab", audience },
    ]),
  ).toEqual([
    {
      name: "github",
      issuer: "https://token.actions.githubusercontent.com",
      jwksUri: "https://token.actions.githubusercontent.com/.well-known/jwks",
      audience,
      claims: "github",
    },
    {
      name: "gitlab",
      issuer: "https://gitlab.com",
      jwksUri: "https://gitlab.com/oauth/discovery/keys",
      audience,
      claims: "gitlab",
    },
  ]);
});

test("another issuer names its claims as GitHub does, unless it says otherwise", () => {
  const [own, gitlab] = parse([
    { name: "ci", issuer: "https://ci.example/", jwks_uri: "https://keys.example/jwks", audience: "a" },
    { name: "internal", issuer: "https://gitlab.example", audience: "a", claims: "gitlab" },
  ]);
  expect(own).toMatchObject({ issuer: "https://ci.example/", jwksUri: "https://keys.example/jwks", claims: "github" });
  expect(gitlab).toMatchObject({ jwksUri: "https://gitlab.example/oauth/discovery/keys", claims: "gitlab" });
});

const loopback = { name: "ci", issuer: "http://127.0.0.1:4999", jwks_uri: "http://127.0.0.1:4999/jwks", audience: "a" };

test("plain http is accepted for this machine, and only in a local run", () => {
  expect(parse([loopback], true)).toMatchObject([{ issuer: "http://127.0.0.1:4999" }]);
  expect(() => parse([{ ...loopback, audience: "b" }])).toThrow("0.issuer must be an https URL;");
});

test.each<[string, unknown, string]>([
  ["text", "github", "OIDC_ISSUERS cannot be used. It is not JSON."],
  ["an object", {}, "OIDC_ISSUERS cannot be used. The input is not valid: the body must be a list."],
  ["a list of names", ["github"], "The input is not valid: 0 Invalid input"],
  [
    "an entry without an audience",
    [{ name: "github" }],
    "0.audience is required: tokens for other services would be accepted.",
  ],
  ["an empty audience", [{ name: "github", audience: " " }], "0.audience is required"],
  ["a name in upper case", [{ name: "CI", audience: "a" }], "0.name must be 1 to 32 lower-case"],
  [
    "an unknown issuer without its address",
    [{ name: "ci", audience: "a" }],
    "0.issuer is required, except for github and gitlab.",
  ],
  ["an unknown field", [{ name: "github", audience: "a", jwksUri: "x" }], "0.jwksUri is not a known field."],
  ["unknown claims", [{ name: "github", audience: "a", claims: "travis" }], "0.claims must be github or gitlab."],
  ["an address that is no URL", [{ ...loopback, issuer: "ci" }], "0.issuer must be an https URL, or http to"],
  ["http to another machine", [{ ...loopback, jwks_uri: "http://127.0.0.1.evil.example/" }], "0.jwks_uri must"],
  ["http with a user name", [{ ...loopback, jwks_uri: "http://127.0.0.1:1@evil.example/" }], "0.jwks_uri must"],
  ["a file", [{ ...loopback, jwks_uri: "file:///etc/passwd" }], "0.jwks_uri must be"],
  ["one name twice", [loopback, { ...loopback, issuer: "https://a.example" }], "must have different names"],
  ["one issuer twice", [loopback, { ...loopback, name: "other" }], "must have different issuers"],
  [
    "the public GitHub under another name too",
    [
      { name: "github", audience: "a" },
      { name: "ci", audience: "b", issuer: "https://token.actions.githubusercontent.com" },
    ],
    "must have different issuers",
  ],
])("%s is rejected with the place of the mistake", (_title, entries, message) => {
  expect(() => parse(entries, true)).toThrow(SettingError);
  expect(() => parse(entries, true)).toThrow(message);
});
