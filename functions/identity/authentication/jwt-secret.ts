import type { KeyObject } from "node:crypto";
import { settings } from "../../foundation/platform/env.ts";
import { SettingError } from "../../foundation/platform/errors.ts";
import { log } from "../../foundation/platform/log.ts";
import { secretCache } from "../../foundation/platform/secret-cache.ts";
import { hs256Key } from "./hs256.ts";

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
