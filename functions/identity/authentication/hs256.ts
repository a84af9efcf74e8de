import { createSecretKey, type KeyObject } from "node:crypto";
import type jsonwebtoken from "jsonwebtoken";
import { settings } from "../../foundation/platform/env.ts";
import { SettingError } from "../../foundation/platform/errors.ts";
import { log } from "../../foundation/platform/log.ts";
import { secretCache } from "../../foundation/platform/secret-cache.ts";
import { type Jwt, tokenExpired } from "./jwt.ts";

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
async function jwtLibrary(): Promise<JwtLibrary> {
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
      // Checked in jwt.ts, with the tolerance for clock skew.
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

/*
 * The HS256 secret of the identity provider: the setting JWT_SECRET in a local run, a secret in Secrets Manager
 * (JWT_SECRET_ARN) on AWS. During a rotation the previous version is accepted as well.
 */

const keysOf = secretCache("jwt secret", ({ current, previous }, arn) => {
  if (current === undefined)
    throw new SettingError(`The secret ${arn} has no value. Store the secret of the identity provider in it.`);
  return [hs256Key(current, arn), ...previousKey(previous, arn)];
});

/** The keys of JWT_SECRET. Making them again for each token would add a sixth to the CPU time of a verification. */
let local: { secret: string; keys: KeyObject[] } | undefined;

/** Returns the keys to verify with, newest first; empty when no HS256 secret is configured. */
export async function jwtKeys(now: Date): Promise<KeyObject[]> {
  const arn = settings.jwtSecretArn();
  if (arn !== undefined) return keysOf.get(arn, now);
  const secret = settings.jwtSecret();
  if (secret === undefined) return [];
  if (local?.secret !== secret) local = { secret, keys: [hs256Key(secret, "JWT_SECRET")] };
  return local.keys;
}

/**
 * Reads the keys again, for a token that matches none: it may be signed with a newly rotated secret. Not for every invalid
 * token; undefined = the last read is too recent.
 */
export async function refreshJwtKeys(now: Date): Promise<KeyObject[] | undefined> {
  const arn = settings.jwtSecretArn();
  return arn === undefined ? undefined : keysOf.refresh(arn, now);
}

/** Ignores a previous version that is too short to be a secret: the current version has corrected that mistake. */
function previousKey(previous: string | undefined, arn: string): KeyObject[] {
  try {
    return previous === undefined ? [] : [hs256Key(previous, arn)];
  } catch (error) {
    log.error("previous jwt secret cannot be used", error);
    return [];
  }
}

/**
 * Returns the payload of a token that the provider with the shared secret has signed, or undefined for any other token.
 * @throws ApiError `token_expired`
 * @throws SettingError when a secret is not valid; or the error of the read when it is unavailable
 */
export async function verifyWithSharedSecret({ token }: Jwt, now: Date): Promise<unknown> {
  const expected = { issuer: settings.jwtIssuer(), audience: settings.jwtAudience() };
  const library = await jwtLibrary();
  const verifyWith = (keys: KeyObject[]) => {
    for (const key of keys) {
      const payload = verifyHs256(library, token, key, now, expected);
      if (payload !== undefined) return payload;
    }
    return undefined;
  };
  const keys = await jwtKeys(now);
  if (keys.length === 0 && settings.jwks() === undefined) {
    throw new SettingError("No JWT can be verified. Set JWT_SECRET, JWT_SECRET_ARN or JWKS_ISSUER.");
  }
  return verifyWith(keys) ?? verifyWith((await refreshJwtKeys(now)) ?? []);
}
