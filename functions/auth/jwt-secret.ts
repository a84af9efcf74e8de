import type { KeyObject } from "node:crypto";
import { secretVersions } from "../platform/aws.ts";
import { settings } from "../platform/env.ts";
import { SettingError } from "../platform/errors.ts";
import { log } from "../platform/log.ts";
import { hs256Key } from "./hs256.ts";

/*
 * The HS256 secret of the identity provider: the setting JWT_SECRET in a local run, a secret in Secrets Manager
 * (JWT_SECRET_ARN) on AWS, cached for five minutes. During a rotation the previous version is accepted as well.
 */

const CACHE_TTL_MS = 5 * 60_000;
/**
 * Minimum time between two refreshes. A token that matches no cached key may be signed with a newly rotated secret, so
 * the cache is refreshed early, but not for every invalid token and not more often when the refresh fails.
 */
const MIN_REFRESH_INTERVAL_MS = 30_000;

/** Time for which a failed first fetch is not repeated: callers keep sending tokens during an outage. */
const FAILURE_CACHE_TTL_MS = 5_000;

let failed: { source: string; error: unknown; at: number } | undefined;
let cached: { source: string; keys: KeyObject[]; fetchedAt: number; checkedAt: number } | undefined;

/** Returns the keys to verify with, newest first; empty when no HS256 secret is configured. */
export async function jwtKeys(now: Date): Promise<KeyObject[]> {
  const arn = settings.jwtSecretArn();
  const source = arn ?? settings.jwtSecret();
  if (source === undefined) return [];
  if (cached?.source === source) {
    const isFresh =
      now.getTime() - cached.fetchedAt < CACHE_TTL_MS || now.getTime() - cached.checkedAt < MIN_REFRESH_INTERVAL_MS;
    if (arn === undefined || isFresh) return cached.keys;
  }
  if (arn !== undefined) return fetchKeys(arn, now);
  const keys = [hs256Key(source, "JWT_SECRET")];
  cached = { source, keys, fetchedAt: now.getTime(), checkedAt: now.getTime() };
  return keys;
}

/** Fetches the keys again, for a token that matches no cached key; undefined = the last refresh is too recent. */
export async function refreshJwtKeys(now: Date): Promise<KeyObject[] | undefined> {
  const arn = settings.jwtSecretArn();
  if (arn === undefined || cached === undefined || now.getTime() - cached.checkedAt < MIN_REFRESH_INTERVAL_MS)
    return undefined;
  return fetchKeys(arn, now);
}

async function fetchKeys(arn: string, now: Date): Promise<KeyObject[]> {
  if (failed?.source === arn && now.getTime() - failed.at < FAILURE_CACHE_TTL_MS) throw failed.error;
  try {
    const { current, previous } = await secretVersions(arn);
    if (current === undefined)
      throw new SettingError(`The secret ${arn} has no value. Store the secret of the identity provider in it.`);
    const keys = [hs256Key(current, arn), ...previousKey(previous, arn)];
    cached = { source: arn, keys, fetchedAt: now.getTime(), checkedAt: now.getTime() };
    return keys;
  } catch (error) {
    // Serve the stale secret if the refresh fails.
    if (cached?.source !== arn) {
      failed = { source: arn, error, at: now.getTime() };
      throw error;
    }
    log.error("jwt secret could not be refreshed", error);
    cached.checkedAt = now.getTime();
    return cached.keys;
  }
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
