import { createSecretKey, type KeyObject } from "node:crypto";
import type jsonwebtoken from "jsonwebtoken";
import { SettingError } from "../../foundation/platform/errors.ts";
import { tokenExpired } from "./jwt-claims.ts";

// RFC 7518, section 3.2: a key of the size of the hash output or larger must be used.
const MIN_SECRET_BYTES = 32;

/**
 * Converts the shared secret of the identity provider to a key object. With a string, the library would derive the key
 * for each token, which takes about 40 times as long as the verification.
 * @param settingName the setting that the error message names
 * @throws SettingError when the secret is too short to be safe
 */
export function hs256Key(secret: string, settingName: string): KeyObject {
  const bytes = Buffer.from(secret, "utf8");
  if (bytes.length < MIN_SECRET_BYTES) {
    throw new SettingError(`${settingName} must have at least ${MIN_SECRET_BYTES} bytes, but has ${bytes.length}`);
  }
  return createSecretKey(bytes);
}

export type JwtLibrary = typeof jsonwebtoken;

let library: JwtLibrary | undefined;

/**
 * Loads the library with the first token: requests with an API key do not need it, and their cold start is 3 % shorter. To load
 * modules of ours in this way would make it longer: esbuild removes no unused exports from what they import.
 */
export async function jwtLibrary(): Promise<JwtLibrary> {
  library ??= (await import("jsonwebtoken")).default;
  return library;
}

/** Required values of the claims `iss` and `aud`; absent = any value. */
export interface ExpectedClaims {
  issuer?: string | undefined;
  audience?: string | undefined;
}

/**
 * Returns the payload of a token that is signed with HS256 and this key, or undefined when the signature, the issuer or
 * the audience does not match.
 * @throws ApiError `token_expired`
 */
export function verifyHs256(
  jwt: JwtLibrary,
  token: string,
  key: KeyObject,
  now: Date,
  { issuer, audience }: ExpectedClaims,
): unknown {
  try {
    return jwt.verify(token, key, {
      algorithms: ["HS256"],
      clockTimestamp: Math.floor(now.getTime() / 1000),
      // Checked in jwt-claims.ts, with the tolerance for clock skew.
      ignoreNotBefore: true,
      ...(issuer !== undefined && { issuer }),
      ...(audience !== undefined && { audience }),
    });
  } catch (error) {
    if (error instanceof jwt.TokenExpiredError) throw tokenExpired();
    if (error instanceof jwt.JsonWebTokenError || error instanceof SyntaxError) return undefined;
    // The library throws a TypeError when the payload is null.
    if (error instanceof TypeError && jwt.decode(token) === null) return undefined;
    throw error;
  }
}
