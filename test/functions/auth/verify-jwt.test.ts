import { createHmac, generateKeyPairSync, randomBytes } from "node:crypto";
import { verifyJwt } from "../../../functions/auth/verify-jwt.ts";

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
  "JWKS_ISSUER",
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
  ["has a lifetime over an hour and a minute", () => sign({ ...claims, exp: nowSeconds + 3661 + 1 })],
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
