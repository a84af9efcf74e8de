import { randomBytes } from "node:crypto";
import { parseJwt } from "../../../../functions/identity/authentication/jwt.ts";

const header = Buffer.from('{"alg":"HS256"}').toString("base64url");
const ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

test.each([1, 2, 3, 32, 33, 34, 64, 256])("of a signature of %i bytes, one encoding is accepted", (length) => {
  const signature = randomBytes(length);
  const accepted = [...ALPHABET].filter((last) => {
    const encoded = signature.toString("base64url").slice(0, -1) + last;
    // Other text is another signature.
    if (!Buffer.from(encoded, "base64url").equals(signature)) return false;
    return parseJwt(`${header}.e30.${encoded}`)?.header.alg === "HS256";
  });
  expect(accepted).toEqual([signature.toString("base64url").at(-1)]);
});

test("a signature that is not whole bytes is rejected", () => {
  expect(parseJwt(`${header}.e30.AAAAA`)).toBeUndefined();
});
