import { publicKeyIssuer } from "../../../../functions/identity/authentication/user-jwt.ts";

const before = { ...process.env };
beforeEach(() => {
  process.env.JWKS_SHARES_USERS = "true";
});
afterEach(() => {
  for (const name of Object.keys(process.env)) if (!(name in before)) delete process.env[name];
  Object.assign(process.env, before);
});

test.each<[string, Record<string, string>, unknown]>([
  ["no issuer", { JWKS_ISSUER: "", JWKS_URI: "https://idp.example.com/keys" }, undefined],
  [
    "an issuer and an audience",
    { JWKS_ISSUER: "https://idp.example.com", JWKS_AUDIENCE: "api", JWKS_SHARES_USERS: "false" },
    {
      issuer: "https://idp.example.com",
      uri: "https://idp.example.com/.well-known/jwks.json",
      audiences: ["api"],
      sharesUsers: false,
    },
  ],
  [
    "an issuer with a trailing slash",
    { JWKS_ISSUER: "https://idp.example.com/", JWKS_AUDIENCE: "api", JWKS_SHARES_USERS: "true" },
    {
      issuer: "https://idp.example.com/",
      uri: "https://idp.example.com/.well-known/jwks.json",
      audiences: ["api"],
      sharesUsers: true,
    },
  ],
  [
    "an issuer, a URI and an audience",
    {
      JWKS_ISSUER: "https://idp.example.com",
      JWKS_URI: "https://keys.example.com/x.json",
      JWKS_AUDIENCE: "api",
      JWKS_SHARES_USERS: "true",
    },
    {
      issuer: "https://idp.example.com",
      uri: "https://keys.example.com/x.json",
      audiences: ["api"],
      sharesUsers: true,
    },
  ],
])("publicKeyIssuer for %s", (_title, environment, expected) => {
  Object.assign(process.env, environment);
  expect(publicKeyIssuer()).toEqual(expected);
});

test.each<[string, string[] | RegExp]>([
  ["api", ["api"]],
  ["web, mobile,", ["web", "mobile"]],
  ["https://api.example.com/ v2", ["https://api.example.com/ v2"]],
  ["", /^JWKS_AUDIENCE is not set/],
  [" , ", /^JWKS_AUDIENCE names no audience/],
  ['["web","mobile"]', /^JWKS_AUDIENCE is a comma-separated list without brackets and quotes/],
  ['"api"', /^JWKS_AUDIENCE is a comma-separated list/],
])("JWKS_AUDIENCE=%j is read as %j", (text, expected) => {
  Object.assign(process.env, { JWKS_ISSUER: "https://idp.example.com", JWKS_AUDIENCE: text });
  if (Array.isArray(expected)) expect(publicKeyIssuer()?.audiences).toEqual(expected);
  else expect(() => publicKeyIssuer()).toThrow(expected);
});

test("a JWT_AUDIENCE without a name is refused at the start, also beside public keys", () => {
  process.env.JWT_AUDIENCE = " , ";
  expect(() => publicKeyIssuer()).toThrow(/^JWT_AUDIENCE names no audience/);
});

test.each<[issuer: string, uri: string, stage: string, isAccepted: boolean]>([
  ["https://idp.example.com", "", "", true],
  ["http://127.0.0.1:8080/realms/dev", "", "", true],
  ["http://localhost:8080/", "", "", true],
  ["http://127.0.0.1:8080", "", "prod", false],
  ["http://idp.example.com", "", "", false],
  ["https://idp.example.com", "http://10.0.0.1/jwks", "", false],
  ["https://idp.example.com", "http://localhost:8080/jwks", "", true],
  ["idp.example.com", "", "", false],
])("the issuer %s with the keys at %j in the stage %j is accepted: %s", (issuer, uri, stage, isAccepted) => {
  Object.assign(process.env, { JWKS_ISSUER: issuer, JWKS_URI: uri, STAGE: stage, JWKS_AUDIENCE: "api" });
  if (isAccepted) expect(publicKeyIssuer()?.uri).toBe(uri || `${issuer.replace(/\/$/, "")}/.well-known/jwks.json`);
  else
    expect(() => publicKeyIssuer()).toThrow(/^JWKS_URI .*must be an https URL, or in a local run an http URL of this/);
});

test.each(["client_id", "azp", "", "aud", "sub"])(
  "JWKS_AUDIENCE_CLAIM=%j is accepted unless it is another claim",
  (claim) => {
    const jwks = { JWKS_ISSUER: "https://idp.example.com", JWKS_AUDIENCE: "api", JWKS_AUDIENCE_CLAIM: claim };
    Object.assign(process.env, jwks);
    if (["aud", "sub"].includes(claim))
      expect(() => publicKeyIssuer()).toThrow("JWKS_AUDIENCE_CLAIM must be client_id or azp");
    else expect(publicKeyIssuer()?.audienceClaim).toBe(claim || undefined);
  },
);
