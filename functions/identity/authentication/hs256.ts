import { createSecretKey, type KeyObject } from "node:crypto";
import type jsonwebtoken from "jsonwebtoken";
import { settings } from "../../foundation/platform/env.ts";
import { SettingError } from "../../foundation/platform/errors.ts";
import { log } from "../../foundation/platform/log.ts";
import { parseJson } from "../../foundation/platform/parse-json.ts";
import { secretCache } from "../../foundation/platform/secret-cache.ts";
import type { Jwt } from "./jwt.ts";

/** What surrounds a secret that was not stored as plain text. With it, no token of the provider would match. */
const wrappings: { found: (text: string) => boolean; problem: string }[] = [
  // The form in which the console of Secrets Manager stores a key and a value.
  { found: (text) => /^\s*[{[]/.test(text) && parseJson(text) !== undefined, problem: "is JSON" },
  { found: (text) => /^(["'`]).*\1$/s.test(text), problem: "is in quotes" },
  { found: (text) => text !== text.trim(), problem: "begins or ends with white space or a byte order mark" },
];

// RFC 7518, section 3.2: a key of the size of the hash output or larger must be used.
const MIN_SECRET_BYTES = 32;

/**
 * Converts the shared secret of the identity provider to a key object. With a string, the library would derive the key
 * for each token, which takes about 40 times as long as the verification.
 *
 * A line end at the end is not part of it: editors and `echo` write one, and no provider issues a secret with it. Anything else around
 * a secret is refused, because it may be part of one: only the operator knows.
 * @param settingName the setting that the error message names
 * @throws SettingError when the secret is too short to be safe, or has something around it
 */
export function hs256Key(secret: string, settingName: string): KeyObject {
  const text = secret.replace(/\r?\n$/, "");
  const wrapping = wrappings.find(({ found }) => found(text));
  if (wrapping)
    throw new SettingError(`${settingName} ${wrapping.problem}. Store the secret of the identity provider alone`);
  const bytes = Buffer.from(text, "utf8");
  if (bytes.length < MIN_SECRET_BYTES) {
    throw new SettingError(`${settingName} must have at least ${MIN_SECRET_BYTES} bytes, but has ${bytes.length}`);
  }
  return createSecretKey(bytes);
}

let library: typeof jsonwebtoken | undefined;

/**
 * Loads the library with the first token: requests with an API key do not need it, and their cold start is 3 % shorter. To load
 * modules of ours in this way would make it longer: esbuild removes no unused exports from what they import.
 */
async function jwtLibrary(): Promise<typeof jsonwebtoken> {
  library ??= (await import("jsonwebtoken")).default;
  return library;
}

/** Returns whether a token is signed with HS256 and this key. Its claims are checked in jwt.ts. */
export function isSignedWith(key: KeyObject, token: string, jwt: typeof jsonwebtoken): boolean {
  try {
    jwt.verify(token, key, { algorithms: ["HS256"], ignoreExpiration: true, ignoreNotBefore: true });
    return true;
  } catch (error) {
    if (error instanceof jwt.JsonWebTokenError) return false;
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

/** Ignores a previous version that cannot be a secret: the current version has corrected that mistake. */
function previousKey(previous: string | undefined, arn: string): KeyObject[] {
  try {
    return previous === undefined ? [] : [hs256Key(previous, arn)];
  } catch (error) {
    log.error("previous jwt secret cannot be used", error);
    return [];
  }
}

/**
 * Returns whether the provider with the shared secret has signed a token.
 * @throws SettingError when a secret is not valid, or there is no key for any token; or the error of a read when it is unavailable
 */
export async function isSignedWithSecret({ token }: Jwt, now: Date): Promise<boolean> {
  const jwt = await jwtLibrary();
  const keys = await jwtKeys(now);
  if (keys.length === 0 && settings.jwksIssuer() === undefined) {
    throw new SettingError("No JWT can be verified. Set JWT_SECRET, JWT_SECRET_ARN or JWKS_ISSUER.");
  }
  const isSigned = (key: KeyObject) => isSignedWith(key, token, jwt);
  return keys.some(isSigned) || ((await refreshJwtKeys(now)) ?? []).some(isSigned);
}
