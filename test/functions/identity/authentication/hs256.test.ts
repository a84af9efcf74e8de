import { generateKeyPairSync, randomBytes } from "node:crypto";
import jwt from "jsonwebtoken";
import { hs256Key, verifyHs256 } from "../../../../functions/identity/authentication/hs256.ts";

const now = new Date();
const nowSeconds = Math.floor(now.getTime() / 1000);
const secret = randomBytes(32).toString("hex");
const key = hs256Key(secret, "JWT_SECRET");
const sign = (payload: object, options: jwt.SignOptions = {}, secretOrKey: jwt.Secret = secret) =>
  jwt.sign({ sub: "user-1", exp: nowSeconds + 60, ...payload }, secretOrKey, options);

test.each([
  ["no characters", "", 0],
  ["31 characters", "x".repeat(31), 31],
  ["15 letters of two bytes", "é".repeat(15), 30],
])("hs256Key throws for a secret of %s, with the name of its setting and without its value", (_title, short, bytes) => {
  expect(() => hs256Key(short, "JWT_SECRET")).toThrow(
    expect.objectContaining({
      name: "SettingError",
      message: `JWT_SECRET must have at least 32 bytes, but has ${bytes}`,
    }),
  );
});

test.each([
  ["32 characters", "x".repeat(32)],
  ["16 letters of two bytes", "é".repeat(16)],
])("hs256Key accepts a secret of %s", (_title, enough) => {
  expect(hs256Key(enough, "JWT_SECRET")).toMatchObject({ type: "secret", symmetricKeySize: 32 });
});

test("verifyHs256 returns the payload of a token with a valid signature", () => {
  expect(verifyHs256(jwt, sign({}), key, now, {})).toMatchObject({ sub: "user-1", exp: nowSeconds + 60 });
});

test.each([
  ["another secret", () => sign({}, {}, randomBytes(32).toString("hex"))],
  ["HS384", () => sign({}, { algorithm: "HS384" })],
  ["HS512", () => sign({}, { algorithm: "HS512" })],
  ["no algorithm", () => jwt.sign({ sub: "user-1" }, "", { algorithm: "none" })],
  ["a key pair", () => sign({}, { algorithm: "RS256" }, rsa.privateKey)],
  ["no signature", () => sign({}).replace(/[^.]+$/, "")],
  ["the signature of another token", () => `${sign({ sub: "admin" }).replace(/[^.]+$/, "")}${sign({}).split(".")[2]}`],
  ["an exp that is a string", () => jwtOf('{"sub":"user-1","exp":"tomorrow"}')],
  ["a payload that is not JSON", () => jwtOf("payload").replace(/^[^.]+/, header({ alg: "HS256", typ: "JWT" }))],
  ["no JWT format", () => "garbage"],
])("verifyHs256 returns undefined for a token with %s", (_title, token) => {
  expect(verifyHs256(jwt, token(), key, now, {})).toBeUndefined();
});
const rsa = generateKeyPairSync("rsa", { modulusLength: 2048 });
const header = (value: object) => Buffer.from(JSON.stringify(value)).toString("base64url");
/** Returns a signed token with exactly this payload. */
const jwtOf = (payload: string) => jwt.sign(payload, secret);

test("verifyHs256 throws an error of the library, so that no valid token is taken for an invalid one", () => {
  const verify = () => {
    throw new TypeError("not a function");
  };
  expect(() => verifyHs256({ ...jwt, verify }, sign({}), key, now, {})).toThrow("not a function");
});

test.each([
  ["a second ago", -1],
  ["now", 0],
])(
  "verifyHs256 throws token_expired for a token that expired %s, but only if its signature is valid",
  (_title, seconds) => {
    const expired = sign({ exp: nowSeconds + seconds });
    expect(() => verifyHs256(jwt, expired, key, now, {})).toThrow(expect.objectContaining({ code: "token_expired" }));
    const foreign = sign({ exp: nowSeconds + seconds }, {}, randomBytes(32).toString("hex"));
    expect(verifyHs256(jwt, foreign, key, now, {})).toBeUndefined();
  },
);

test.each([
  ["the issuer", { issuer: "https://idp" }, { iss: "https://idp" }, true],
  ["another issuer", { issuer: "https://idp" }, { iss: "https://idp/" }, false],
  ["no issuer", { issuer: "https://idp" }, {}, false],
  ["the audience", { audience: "api" }, { aud: "api" }, true],
  ["the audience among others", { audience: "api" }, { aud: ["web", "api"] }, true],
  ["another audience", { audience: "api" }, { aud: "apis" }, false],
  ["no audience", { audience: "api" }, {}, false],
  ["no audiences", { audience: "api" }, { aud: [] }, false],
  ["both", { issuer: "https://idp", audience: "api" }, { iss: "https://idp", aud: "api" }, true],
  ["one of both", { issuer: "https://idp", audience: "api" }, { iss: "https://idp", aud: "web" }, false],
  ["any, when none is configured", {}, { iss: "https://other", aud: "web" }, true],
])(
  "a token with %s, for the expected %j and the claims %j, is accepted: %s",
  (_title, expected, claims, isAccepted) => {
    expect(verifyHs256(jwt, sign(claims), key, now, expected) !== undefined).toBe(isAccepted);
  },
);
