import { generateKeyPairSync, randomBytes } from "node:crypto";
import jwt from "jsonwebtoken";
import { hs256Key, isSignedWith } from "../../../../functions/identity/authentication/hs256.ts";

const nowSeconds = Math.floor(Date.now() / 1000);
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

const text = "0123456789abcdef".repeat(2);
test.each([
  ["a line end", `${text}\n`],
  ["a line end of Windows", `${text}\r\n`],
])("hs256Key accepts a secret that an editor has stored with %s, without it", (_title, stored) => {
  expect(hs256Key(stored, "JWT_SECRET").equals(hs256Key(text, "JWT_SECRET"))).toBe(true);
});

test.each([
  ["in double quotes", `"${text}"`, "is in quotes"],
  ["in single quotes", `'${text}'\n`, "is in quotes"],
  ["in the form of the AWS console", JSON.stringify({ JWT_SECRET: text }), "is JSON"],
  ["as a JSON Web Key", JSON.stringify({ kty: "oct", k: text }, null, 2), "is JSON"],
  ["after a byte order mark", `\uFEFF${text}`, "begins or ends with white space or a byte order mark"],
  ["after a space", ` ${text}`, "begins or ends with white space"],
  ["before two line ends", `${text}\n\n`, "begins or ends with white space"],
])("hs256Key throws for a secret %s, with the name of its setting and without its value", (_title, stored, problem) => {
  const message = expect.stringMatching(new RegExp(`^JWT_SECRET ${problem}.*[.] Store the secret of the identity`));
  expect(() => hs256Key(stored, "JWT_SECRET")).toThrow(expect.objectContaining({ name: "SettingError", message }));
  expect(() => hs256Key(stored, "JWT_SECRET")).not.toThrow(text);
});

test.each(['it"s', "1234", "null", "a b"])("hs256Key accepts a secret with %j in it", (part) => {
  expect(hs256Key(part + text, "JWT_SECRET")).toMatchObject({ type: "secret" });
});

test.each([
  ["32 characters", "x".repeat(32)],
  ["16 letters of two bytes", "é".repeat(16)],
])("hs256Key accepts a secret of %s", (_title, enough) => {
  expect(hs256Key(enough, "JWT_SECRET")).toMatchObject({ type: "secret", symmetricKeySize: 32 });
});

const isSigned = (token: string) => isSignedWith(key, token, jwt);

test("a token is signed with the key, whatever its claims are", () => {
  for (const claims of [{}, { exp: nowSeconds - 60 }, { nbf: nowSeconds + 600 }, { aud: 1, iss: [] }])
    expect(isSigned(sign(claims))).toBe(true);
});

test.each([
  ["another secret", () => sign({}, {}, randomBytes(32).toString("hex"))],
  ["HS384", () => sign({}, { algorithm: "HS384" })],
  ["HS512", () => sign({}, { algorithm: "HS512" })],
  ["no algorithm", () => jwt.sign({ sub: "user-1" }, "", { algorithm: "none" })],
  ["a key pair", () => sign({}, { algorithm: "RS256" }, rsa.privateKey)],
  ["no signature", () => sign({}).replace(/[^.]+$/, "")],
  ["the signature of another token", () => `${sign({ sub: "admin" }).replace(/[^.]+$/, "")}${sign({}).split(".")[2]}`],
  ["no JWT format", () => "garbage"],
])("a token with %s is not signed with the key", (_title, token) => {
  expect(isSigned(token())).toBe(false);
});
const rsa = generateKeyPairSync("rsa", { modulusLength: 2048 });

test("an error of the library is thrown, so that no valid token is taken for an invalid one", () => {
  const verify = () => {
    throw new TypeError("not a function");
  };
  expect(() => isSignedWith(key, sign({}), { ...jwt, verify })).toThrow("not a function");
});
