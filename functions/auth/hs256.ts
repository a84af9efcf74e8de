import { createSecretKey, type KeyObject } from "node:crypto";
import jwt from "jsonwebtoken";
import { SettingError } from "../platform/errors.ts";
import { tokenExpired } from "./jwt-claims.ts";

// RFC 7518, section 3.2: a key of the size of the hash output or larger must be used.
const MIN_SECRET_BYTES = 32;

/**
 * The provider's shared secret as a key object: given a string, the library would derive the key anew for each token, which
 * takes some forty times as long as the verification.
 * @throws SettingError when the secret is too short to be safe
 */
export function hs256Key(secret: string, settingName: string): KeyObject {
  const bytes = Buffer.from(secret, "utf8");
  if (bytes.length < MIN_SECRET_BYTES) {
    throw new SettingError(`${settingName} must be at least ${MIN_SECRET_BYTES} bytes long, it has ${bytes.length}`);
  }
  return createSecretKey(bytes);
}

export interface ExpectedClaims {
  issuer?: string | undefined;
  audience?: string | undefined;
}

/**
 * The payload of a token that was signed with HS256 and this key, or undefined when the signature, issuer or audience is
 * another.
 * @throws ApiError `token_expired`
 */
export function verifyHs256(token: string, key: KeyObject, now: Date, { issuer, audience }: ExpectedClaims): unknown {
  try {
    return jwt.verify(token, key, {
      algorithms: ["HS256"],
      clockTimestamp: Math.floor(now.getTime() / 1000),
      // Judged with its tolerance for clock skew in jwt-claims.ts.
      ignoreNotBefore: true,
      ...(issuer !== undefined && { issuer }),
      ...(audience !== undefined && { audience }),
    });
  } catch (error) {
    if (error instanceof jwt.TokenExpiredError) throw tokenExpired();
    if (error instanceof jwt.JsonWebTokenError || error instanceof SyntaxError) return undefined;
    // Over claims that are null the library fails with a TypeError.
    if (error instanceof TypeError && jwt.decode(token) === null) return undefined;
    throw error;
  }
}
