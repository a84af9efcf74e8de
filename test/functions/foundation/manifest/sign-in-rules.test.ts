import { setFunctionDefaults } from "../../../../bin/command/settings.ts";
import { isRequiredClaims, missingSignInSettings } from "../../../../functions/foundation/manifest/sign-in-rules.ts";
import { SettingError } from "../../../../functions/foundation/platform/errors.ts";
import { publicKeyIssuer } from "../../../../functions/identity/authentication/user-jwt.ts";
import { InvalidStageError, type Stage, validateStage } from "../../../../lib/stage.ts";
import { stageNamed } from "../../../../lib/stages.ts";

const saved = { ...process.env };
afterEach(() => {
  for (const name of Object.keys(process.env)) if (!(name in saved)) delete process.env[name];
  Object.assign(process.env, saved);
});

const both = { issuer: "https://id.example", audience: "api" };
const jwksOf = (issuer: string, sharesUsers?: boolean) => ({
  issuer,
  audience: "api",
  ...(sharesUsers !== undefined && { sharesUsers }),
});

/** A stage, and the missing option. */
const stages: [title: string, missing: string[], Partial<Stage>][] = [
  ["without options", [], {}],
  ["that keeps data, without a provider", ["jwt.issuer", "jwt.audience"], { keepsData: true }],
  ["that keeps data, without an audience", ["jwt.audience"], { keepsData: true, jwt: { issuer: both.issuer } }],
  ["that keeps data, without an issuer", ["jwt.issuer"], { keepsData: true, jwt: { audience: "api" } }],
  ["that keeps data, with both", [], { keepsData: true, jwt: both }],
  [
    "that keeps data, with public keys only",
    ["jwt.issuer", "jwt.audience"],
    { keepsData: true, jwks: jwksOf(both.issuer, true) },
  ],
  ...(
    [
      ["an issuer of HS256 tokens that is equal", both.issuer, both.issuer],
      ["one that differs in its slash", both.issuer, `${both.issuer}/`],
      ["one that differs in two slashes", `${both.issuer}//`, both.issuer],
      ["one that differs in its case", "https://ID.Example/Auth/v1", "https://id.example/auth/v1"],
      ["one that differs in its port", "https://id.example:443/auth", "https://id.example/auth/"],
      ["one that differs in its port at the end", "https://id.example:443", "https://id.example/"],
      ["one without the scheme, as Google's", "accounts.google.com", "https://accounts.google.com"],
      ["one with http", "http://id.example", "https://id.example"],
      ["one with spaces", " https://id.example ", "https://id.example"],
    ] as const
  ).map(([title, hs256, publicKeys]): [string, string[], Partial<Stage>] => [
    `with public keys, and ${title}`,
    ["jwks.sharesUsers"],
    { jwt: { issuer: hs256, audience: "api" }, jwks: jwksOf(publicKeys) },
  ]),
  ["with public keys, and no issuer of HS256 tokens", ["jwks.sharesUsers"], { jwks: jwksOf(both.issuer) }],
  [
    "with public keys, and an audience only",
    ["jwks.sharesUsers"],
    { jwt: { audience: "api" }, jwks: jwksOf(both.issuer) },
  ],
  ["with public keys that share users", [], { jwt: both, jwks: jwksOf(both.issuer, true) }],
  ["with public keys that do not share users", [], { jwt: both, jwks: jwksOf(both.issuer, false) }],
  ["with public keys only, that share users", [], { jwks: jwksOf(both.issuer, true) }],
  ["with public keys of another issuer", [], { jwt: both, jwks: jwksOf("https://sso.example") }],
  ["with public keys of another path", [], { jwt: both, jwks: jwksOf(`${both.issuer}/realms/two`) }],
  ["with public keys of another port", [], { jwt: both, jwks: jwksOf(`${both.issuer}:4430`) }],
];
const variableOf: Record<string, string> = {
  "jwt.issuer": "JWT_ISSUER",
  "jwt.audience": "JWT_AUDIENCE",
  "jwks.sharesUsers": "JWKS_SHARES_USERS",
};

describe.each(stages)("a stage %s", (_title, missing, options) => {
  const { keepsData = false, jwt, jwks } = options;
  const environment = Object.entries({
    KEEPS_DATA: keepsData ? "true" : undefined,
    JWT_ISSUER: jwt?.issuer,
    JWT_AUDIENCE: jwt?.audience,
    JWKS_ISSUER: jwks?.issuer,
    JWKS_AUDIENCE: jwks?.audience,
    JWKS_SHARES_USERS: jwks?.sharesUsers?.toString(),
  }).filter(([, value]) => value !== undefined);

  test(`lacks ${missing.join(" and ") || "nothing"}`, () => {
    expect(missingSignInSettings({ keepsData, jwt, jwks }).map(({ option }) => option)).toEqual(missing);
  });

  test(missing.length === 0 ? "is synthesized" : "stops the synthesis, with each option", () => {
    const synthesize = () => validateStage({ ...stageNamed("dev"), ...options });
    if (missing.length === 0) expect(synthesize).not.toThrow();
    else expect(synthesize).toThrow(InvalidStageError);
    for (const option of missing) expect(synthesize).toThrow(`  ${option}: must be `);
  });

  test.each([
    ["a function", publicKeyIssuer],
    ["a local run", () => setFunctionDefaults({ jwtSecret: "x".repeat(32) })],
  ])(missing.length === 0 ? "starts %s" : "stops %s, with the variable", (_where, start) => {
    Object.assign(process.env, Object.fromEntries(environment));
    if (missing.length === 0) return expect(start).not.toThrow();
    expect(start).toThrow(SettingError);
    return expect(start).toThrow(new RegExp(`^${variableOf[missing[0] ?? ""]} must be `));
  });
});

test.each([
  [{ workflowIssuers: [{ name: "ci", issuer: "https://id.example/", audience: "a" }], jwt: both }],
  [
    {
      workflowIssuers: [{ name: "ci", issuer: "https://ID.example", audience: "a" }],
      jwks: jwksOf(both.issuer, true),
    },
  ],
])("an issuer of workflows that is one of users in another spelling stops the synthesis: %j", (options) => {
  expect(() => validateStage({ ...stageNamed("dev"), ...options })).toThrow("must not contain the issuer of users");
});

test("two issuers of workflows that differ only in their spelling stop the synthesis", () => {
  const issuers = ["https://ci.example/a", "https://CI.example/a/"];
  const workflowIssuers = issuers.map((issuer, index) => ({ name: `ci-${index}`, issuer, audience: "a" }));
  expect(() => validateStage({ ...stageNamed("dev"), workflowIssuers })).toThrow("must have different issuers");
});

test.each<[unknown, boolean]>([
  [{}, true],
  [{ email_verified: true }, true],
  [{ "https://a.example/roles": ["a", 1, false] }, true],
  [{ "cognito:groups": "staff" }, true],
  [[], false],
  [null, false],
  ["email_verified", false],
  [{ a: null }, false],
  [{ a: [] }, false],
  [{ a: [null] }, false],
  [{ a: { b: 1 } }, false],
  [{ "": 1 }, false],
  [{ 'a"': 1 }, false],
  [{ "a b": 1 }, false],
  [{ $a: 1 }, false],
  [{ ["a".repeat(101)]: 1 }, false],
])("the required claims %j are accepted: %s", (claims, isAccepted) => {
  expect(isRequiredClaims(claims)).toBe(isAccepted);
  process.env.JWT_REQUIRED_CLAIMS = JSON.stringify(claims);
  const start = () => setFunctionDefaults({ jwtSecret: "x".repeat(32) });
  if (isAccepted) expect(start).not.toThrow();
  else expect(start).toThrow(/^JWT_REQUIRED_CLAIMS cannot be used\. .* Example: \{"email_verified":true\}$/);
  const validate = () => validateStage({ ...stageNamed("dev"), jwt: { requiredClaims: claims } } as Stage);
  if (isAccepted) expect(validate).not.toThrow();
  else expect(validate).toThrow(/jwt\.requiredClaims/);
});
