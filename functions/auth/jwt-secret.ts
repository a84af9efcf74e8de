import type { KeyObject } from "node:crypto";
import { secretVersions } from "../platform/aws.ts";
import { settings } from "../platform/env.ts";
import { SettingError } from "../platform/errors.ts";
import { log } from "../platform/log.ts";
import { hs256Key } from "./hs256.ts";

/*
 * The identity provider's HS256 secret: from JWT_SECRET on a laptop, from Secrets Manager (JWT_SECRET_ARN) on AWS, where it
 * is kept for five minutes. During a rotation the previous version is accepted as well.
 */

const KEEP_MS = 5 * 60_000;
/**
 * A token that no known key fits may be signed with one that was just rotated in: look again, but not for every bad token,
 * and no more often when looking fails.
 */
const LOOK_AGAIN_AFTER_MS = 30_000;

/** How long a secret that could not be had at all is not asked for again: callers do not stop sending tokens meanwhile. */
const GIVE_UP_MS = 5_000;

let failed: { source: string; error: unknown; at: number } | undefined;
let cached: { source: string; keys: KeyObject[]; fetchedAt: number; lookedAt: number } | undefined;

/** The keys to try, newest first; empty when no HS256 secret is configured. */
export async function jwtKeys(now: Date): Promise<KeyObject[]> {
  const secret = settings.jwtSecret();
  const arn = settings.jwtSecretArn();
  const source = arn ?? secret;
  if (source === undefined) return [];
  if (cached?.source === source) {
    const isFresh = now.getTime() - cached.fetchedAt < KEEP_MS || now.getTime() - cached.lookedAt < LOOK_AGAIN_AFTER_MS;
    if (arn === undefined || isFresh) return cached.keys;
  }
  if (arn !== undefined) return fetchKeys(arn, now);
  const keys = [hs256Key(source, "JWT_SECRET")];
  cached = { source, keys, fetchedAt: now.getTime(), lookedAt: now.getTime() };
  return keys;
}

/** The keys once more, when those known are old enough to have been replaced; undefined when it is too early to look. */
export async function refreshJwtKeys(now: Date): Promise<KeyObject[] | undefined> {
  const arn = settings.jwtSecretArn();
  if (arn === undefined || cached === undefined || now.getTime() - cached.lookedAt < LOOK_AGAIN_AFTER_MS)
    return undefined;
  return fetchKeys(arn, now);
}

async function fetchKeys(arn: string, now: Date): Promise<KeyObject[]> {
  if (failed?.source === arn && now.getTime() - failed.at < GIVE_UP_MS) throw failed.error;
  try {
    const { current, previous } = await secretVersions(arn);
    if (current === undefined) throw new SettingError(`The secret ${arn} has no value yet`);
    const keys = [hs256Key(current, arn), ...previousKey(previous, arn)];
    cached = { source: arn, keys, fetchedAt: now.getTime(), lookedAt: now.getTime() };
    return keys;
  } catch (error) {
    // Better a secret that may be a few minutes old than nobody let in.
    if (cached?.source !== arn) {
      failed = { source: arn, error, at: now.getTime() };
      throw error;
    }
    log.error("jwt secret could not be refreshed", error);
    cached.lookedAt = now.getTime();
    return cached.keys;
  }
}

/** A previous version that was never fit to be a secret, a mistake since mended, is passed over. */
function previousKey(previous: string | undefined, arn: string): KeyObject[] {
  try {
    return previous === undefined ? [] : [hs256Key(previous, arn)];
  } catch (error) {
    log.error("previous jwt secret cannot be used", error);
    return [];
  }
}
