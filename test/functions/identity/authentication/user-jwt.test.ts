import { createHmac, generateKeyPairSync, randomBytes } from "node:crypto";
import { parseJwt } from "../../../../functions/identity/authentication/jwt.ts";
import { verifyJwt as verifyParsed } from "../../../../functions/identity/authentication/user-jwt.ts";

const verifyJwt = (token: string, now: Date) => verifyParsed(token, parseJwt(token), now);

const secret = randomBytes(32).toString("hex");
const now = new Date();
const nowSeconds = Math.floor(now.getTime() / 1000);
const claims = { sub: "user-1", iat: nowSeconds, exp: nowSeconds + 3600 };
const hs256 = { alg: "HS256", typ: "JWT" };

const encode = (value: unknown) =>
  Buffer.from(typeof value === "string" ? value : JSON.stringify(value)).toString("base64url");

/** Signs any header and payload. A library would reject some of them. */
function sign(payload: unknown, header: unknown = hs256, key: string = secret, hash = "sha256"): string {
  const input = `${encode(header)}.${encode(payload)}`;
  return `${input}.${createHmac(hash, key).update(input).digest("base64url")}`;
}

const SETTINGS = [
  "JWT_SECRET",
  "JWT_SECRET_ARN",
  "JWT_ISSUER",
  "JWT_AUDIENCE",
  "JWT_REQUIRES_ISSUED_AT",
  "JWT_REQUIRED_CLAIMS",
  "JWKS_ISSUER",
  "KEEPS_DATA",
];
beforeEach(() => {
  for (const name of SETTINGS) delete process.env[name];
  process.env.JWT_SECRET = secret;
});

/** Sets an unused bit: 43 base64url characters have 258 bits for the 256 bits of a signature. */
function reencode(token: string): string {
  const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  return token.slice(0, -1) + alphabet[alphabet.indexOf(token.at(-1) ?? "") + 1];
}

/** Returns a valid token of this length, padded with another claim. */
function tokenOfLength(length: number): string {
  for (let padding = 0; ; padding++) {
    const token = sign({ ...claims, padding: "x".repeat(padding) });
    if (token.length === length) return token;
    if (token.length > length) throw new Error(`no token has ${length} characters`);
  }
}

test("returns the user of a token that the provider has signed", async () => {
  expect(await verifyJwt(sign(claims), now)).toBe("user-1");
});

test("accepts unknown header fields and claims", async () => {
  expect(await verifyJwt(sign({ ...claims, email: "a@b.c" }, { ...hs256, kid: "1", x: 1 }), now)).toBe("user-1");
});

test("accepts a token whose nbf is half a minute in the future", async () => {
  expect(await verifyJwt(sign({ ...claims, nbf: nowSeconds + 30 }), now)).toBe("user-1");
});

test("rejects a token without an iat if JWT_REQUIRES_ISSUED_AT is true", async () => {
  const token = sign({ sub: claims.sub, exp: claims.exp });
  expect(await verifyJwt(token, now)).toBe("user-1");
  process.env.JWT_REQUIRES_ISSUED_AT = "true";
  await expect(verifyJwt(token, now)).rejects.toMatchObject({ code: "invalid_token" });
  expect(await verifyJwt(sign(claims), now)).toBe("user-1");
});

test("accepts a token of 8 KB", async () => {
  expect(await verifyJwt(tokenOfLength(8192), now)).toBe("user-1");
});

const [head, body, signature] = sign(claims).split(".");
const rsa = generateKeyPairSync("rsa", {
  modulusLength: 2048,
  publicKeyEncoding: { type: "spki", format: "pem" },
} as never);
const attacker = randomBytes(32).toString("hex");
const attackersJwk = { kty: "oct", k: Buffer.from(attacker).toString("base64url"), alg: "HS256" };

test.each<[string, () => string]>([
  ["is empty", () => ""],
  ["has one part", () => "garbage"],
  ["has two parts", () => `${head}.${body}`],
  ["has four parts", () => `${head}.${body}.${signature}.x`],
  ["is encrypted, with five parts", () => "a.b.c.d.e"],
  ["has no signature", () => `${head}.${body}.`],
  ["has no payload", () => `${head}..${signature}`],
  ["has no header", () => `.${body}.${signature}`],
  ["has a truncated signature", () => `${head}.${body}.${signature?.slice(0, 20)}`],
  ["has a signature with trailing characters", () => `${head}.${body}.${signature}AA`],
  ["has another encoding of the signature", () => reencode(sign(claims))],
  ["has a padded signature", () => `${head}.${body}.${signature}=`],
  ["has another payload than the signed one", () => `${head}.${encode({ ...claims, sub: "admin" })}.${signature}`],
  ["has another header than the signed one", () => `${encode({ ...hs256, kid: "1" })}.${body}.${signature}`],
  ["is signed with another secret", () => sign(claims, hs256, attacker)],
  ["is signed with the empty secret", () => sign(claims, hs256, "")],
  ["is longer than 8 KB", () => tokenOfLength(8193)],
  ["has alg none", () => `${encode({ alg: "none" })}.${body}.`],
  ["has alg none and a valid signature", () => sign(claims, { alg: "none" })],
  ["has alg None", () => sign(claims, { alg: "None" })],
  ["has alg hs256 in lower case", () => sign(claims, { alg: "hs256" })],
  ["has alg HS384", () => sign(claims, { alg: "HS384" }, secret, "sha384")],
  ["has alg HS512", () => sign(claims, { alg: "HS512" }, secret, "sha512")],
  ["has alg RS256 over an HMAC", () => sign(claims, { alg: "RS256" })],
  ["has alg ES256 over an HMAC", () => sign(claims, { alg: "ES256" })],
  ["has alg HS256 over an HMAC with a public key", () => sign(claims, hs256, String(rsa.publicKey))],
  ["has no alg", () => sign(claims, { typ: "JWT" })],
  ["has an alg that is an array", () => sign(claims, { alg: ["HS256"] })],
  ["has an alg that is null", () => sign(claims, { alg: null })],
  ["has a header that is an array", () => sign(claims, [hs256])],
  ["has a header that is a string", () => sign(claims, '"HS256"')],
  ["has a header that is null", () => sign(claims, "null")],
  ["has a header that is not JSON", () => sign(claims, "{alg:HS256}")],
  ["contains its own key", () => sign(claims, { ...hs256, jwk: attackersJwk }, attacker)],
  [
    "contains the URL of its key",
    () => sign(claims, { ...hs256, jku: "https://evil.example/jwks", kid: "1" }, attacker),
  ],
  ["names a file as its key", () => sign(claims, { ...hs256, kid: "/dev/null" }, "")],
  ["has a critical header", () => sign(claims, { ...hs256, crit: ["exp"], exp: 1 })],
  ["has an empty list of critical headers", () => sign(claims, { ...hs256, crit: [] })],
  ["has null for critical headers", () => sign(claims, { ...hs256, crit: null })],
  ["has a payload that is not JSON", () => sign("payload")],
  ["has a payload that is a string", () => sign('"user-1"')],
  ["has a payload that is null", () => sign("null")],
  ["has a payload that is an array", () => sign([claims])],
  ["has no exp", () => sign({ sub: "user-1", iat: nowSeconds })],
  ["has an exp that is a string", () => sign({ ...claims, exp: String(claims.exp) })],
  ["has an infinite exp", () => sign(`{"sub":"user-1","exp":1e999}`)],
  ["has a lifetime over an hour", () => sign({ ...claims, exp: nowSeconds + 3601 })],
  ["was issued in the future", () => sign({ ...claims, iat: nowSeconds + 62 })],
  ["is not valid yet", () => sign({ ...claims, nbf: nowSeconds + 62 })],
  ["has no sub", () => sign({ iat: claims.iat, exp: claims.exp })],
  ["has an empty sub", () => sign({ ...claims, sub: "" })],
  ["has a sub that is a number", () => sign({ ...claims, sub: 1 })],
  ["has a sub of 256 characters", () => sign({ ...claims, sub: "u".repeat(256) })],
  ["has expired and is signed with another secret", () => sign({ ...claims, exp: nowSeconds - 1 }, hs256, attacker)],
])("throws invalid_token for a token that %s", async (_title, token) => {
  await expect(verifyJwt(token(), now)).rejects.toMatchObject({ name: "ApiError", code: "invalid_token" });
});

test.each([
  ["a second ago", -1],
  ["now, to the second", 0],
  ["yesterday", -86_400],
])("throws token_expired for a token that expired %s", async (_title, seconds) => {
  const token = sign({ ...claims, iat: nowSeconds + seconds - 3600, exp: nowSeconds + seconds });
  await expect(verifyJwt(token, now)).rejects.toMatchObject({ name: "ApiError", code: "token_expired" });
});

test.each([
  ["as configured", { iss: "https://idp", aud: "api" }, true],
  ["for several audiences", { iss: "https://idp", aud: ["web", "api"] }, true],
  ["of another issuer", { iss: "https://evil", aud: "api" }, false],
  ["for another audience", { iss: "https://idp", aud: "web" }, false],
  ["without an issuer", { aud: "api" }, false],
  ["without an audience", { iss: "https://idp" }, false],
])(
  "with an issuer and an audience configured, a token %s, with the claims %j, is accepted: %s",
  async (_title, more, isAccepted) => {
    process.env.JWT_ISSUER = "https://idp";
    process.env.JWT_AUDIENCE = "api";
    const verified = verifyJwt(sign({ ...claims, ...more }), now);
    if (isAccepted) expect(await verified).toBe("user-1");
    else await expect(verified).rejects.toMatchObject({ code: "invalid_token" });
  },
);

// RFC 7519, 9068 and 7515, and docs/configuration.md for id_token+jwt. The others are in the registry of media types, or invented.
test.each<[unknown, boolean]>([
  [undefined, true],
  ["JWT", true],
  ["jwt", true],
  ["application/jwt", true],
  ["at+jwt", true],
  ["AT+JWT", true],
  ["application/at+jwt", true],
  ["JOSE", true],
  ["id_token+jwt", true],
  ["logout+jwt", false],
  ["application/logout+jwt", false],
  ["secevent+jwt", false],
  ["dpop+jwt", false],
  ["oauth-authz-req+jwt", false],
  ["token-introspection+jwt", false],
  ["kb+jwt", false],
  ["dc+sd-jwt", false],
  ["entity-statement+jwt", false],
  ["rt+jwt", false],
  ["refresh+jwt", false],
  ["application/okta-internal-at+jwt", false],
  ["application/application/jwt", false],
  [" JWT", false],
  ["JWT;x=1", false],
  ["x".repeat(4_000), false],
  ['quote"', false],
  ["", false],
  [null, false],
  [1, false],
  [["JWT"], false],
])("a token with the typ %j is accepted: %s", async (typ, isAccepted) => {
  const verified = verifyJwt(sign(claims, { alg: "HS256", typ }), now);
  if (isAccepted) return expect(await verified).toBe("user-1");
  return expect(verified).rejects.toMatchObject({
    code: "invalid_token",
    message: expect.stringMatching(
      /^The JWT has the type [\w.+/-]{0,40}, (?=which does not sign in)[^"\\$\p{Cc}]+\.$/u,
    ),
  });
});

const logout = { "http://schemas.openid.net/event/backchannel-logout": {} };
test.each<[string, object, string]>([
  ["the events of a logout token", { events: logout, sid: "1" }, "events"],
  ["no events", { events: {} }, "events"],
  ["events that are null", { events: null }, "events"],
  ["Keycloak's type of refresh tokens", { typ: "Refresh" }, "typ"],
  ["Keycloak's type of offline tokens", { typ: "Offline" }, "typ"],
  ["Keycloak's type of logout tokens", { typ: "Logout" }, "typ"],
  ["the use of a refresh token", { token_use: "refresh" }, "token_use"],
  ["the type of a refresh token", { token_type: "refresh_token" }, "token_type"],
  ["another name of that type", { type: "refresh" }, "type"],
])("a token with %s is rejected with the name of the claim", async (_title, more, claim) => {
  await expect(verifyJwt(sign({ ...claims, ...more }), now)).rejects.toMatchObject({
    code: "invalid_token",
    message: `The JWT does not sign in: see its claim ${claim}.`,
  });
});

test.each<object>([{ typ: "Bearer" }, { typ: "ID" }, { token_use: "access" }, { token_use: "id" }, { typ: 1 }])(
  "a token with the claims %j of an access or ID token is accepted",
  async (more) => expect(await verifyJwt(sign({ ...claims, ...more }), now)).toBe("user-1"),
);

const firebase = (sign_in_provider: string) => ({ firebase: { identities: {}, sign_in_provider } });
test.each<[string, object, required: object | undefined, isAccepted: boolean]>([
  ["of a user of Supabase", { is_anonymous: false, role: "authenticated" }, undefined, true],
  ["of an anonymous visitor of Supabase", { is_anonymous: true, role: "authenticated" }, undefined, false],
  ["of an anonymous visitor, as text", { is_anonymous: "true" }, undefined, false],
  ["of Supabase's anonymous key", { role: "anon" }, undefined, false],
  ["of Supabase's service key", { role: "service_role" }, undefined, false],
  ["with one role of several that does not sign in", { role: ["admin", "anon"] }, undefined, false],
  ["of a user of Firebase", firebase("password"), undefined, true],
  ["of an anonymous visitor of Firebase", firebase("anonymous"), undefined, false],
  ["of an anonymous visitor that the stage requires", { is_anonymous: true }, { is_anonymous: [true, false] }, true],
  ["without a required claim", {}, { email_verified: true }, false],
  ["with another value", { email_verified: false }, { email_verified: true }, false],
  ["with the value", { email_verified: true }, { email_verified: true }, true],
  ["with the value as text, as Apple sends it", { email_verified: "true" }, { email_verified: true }, true],
  ["with one of the values", { plan: 2 }, { plan: [1, 2] }, true],
  ["with a list that has the value", { "cognito:groups": ["a", "staff"] }, { "cognito:groups": "staff" }, true],
  ["with a list that does not have it", { "cognito:groups": ["a"] }, { "cognito:groups": "staff" }, false],
  ["with a claim in a claim", firebase("google.com"), { "firebase.sign_in_provider": ["google.com"] }, true],
  ["with another claim in a claim", firebase("password"), { "firebase.sign_in_provider": ["google.com"] }, false],
  ["with a claim whose name is a URL", { "https://a.example/r": "x" }, { "https://a.example/r": "x" }, true],
  ["with one claim of two", { a: "1" }, { a: "1", b: "1" }, false],
  ["with an object as the value", { a: { toString: "x" } }, { a: "[object Object]" }, false],
  ["with the name of an inherited property", {}, { "constructor.name": "Object" }, false],
])(
  "a token %s, with the claims %j where %j are required, is accepted: %s",
  async (_title, more, required, isAccepted) => {
    if (required) process.env.JWT_REQUIRED_CLAIMS = JSON.stringify(required);
    const verified = verifyJwt(sign({ ...claims, ...more }), now);
    if (isAccepted) return expect(await verified).toBe("user-1");
    return expect(verified).rejects.toMatchObject({
      code: "invalid_token",
      message: expect.stringMatching(/^The JWT does not sign in: see its claim [\w.:/-]+\.$/),
    });
  },
);

test("where data is kept, every token is a SettingError without a required issuer and audience", async () => {
  process.env.KEEPS_DATA = "true";
  await expect(verifyJwt(sign(claims), now)).rejects.toMatchObject({
    name: "SettingError",
    message: expect.stringMatching(/^JWT_ISSUER must be set where data is kept: /),
  });
  Object.assign(process.env, { JWT_ISSUER: "https://idp", JWT_AUDIENCE: "api" });
  expect(await verifyJwt(sign({ ...claims, iss: "https://idp", aud: "api" }), now)).toBe("user-1");
});

test("throws a SettingError when the audience is a list without a name, which would accept any token", async () => {
  process.env.JWT_AUDIENCE = " , ";
  await expect(verifyJwt(sign({ ...claims, aud: "other" }), now)).rejects.toMatchObject({ name: "SettingError" });
});

test("throws a SettingError when the secret is too short", async () => {
  process.env.JWT_SECRET = "x".repeat(31);
  const verified = verifyJwt(sign(claims, hs256, process.env.JWT_SECRET), now);
  await expect(verified).rejects.toMatchObject({ name: "SettingError" });
});

test("throws a SettingError for every token when no secret is configured", async () => {
  delete process.env.JWT_SECRET;
  for (const key of ["", "undefined", secret]) {
    await expect(verifyJwt(sign(claims, hs256, key), now)).rejects.toMatchObject({ name: "SettingError" });
  }
});

test("uses a changed JWT_SECRET instead of the cached one", async () => {
  expect(await verifyJwt(sign(claims), now)).toBe("user-1");
  process.env.JWT_SECRET = attacker;
  await expect(verifyJwt(sign(claims), now)).rejects.toMatchObject({ code: "invalid_token" });
  expect(await verifyJwt(sign(claims, hs256, attacker), now)).toBe("user-1");
});
