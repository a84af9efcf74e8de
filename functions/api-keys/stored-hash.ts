import { createHmac } from "node:crypto";
import { secretVersions } from "../platform/aws.ts";
import { settings } from "../platform/env.ts";
import { SettingError } from "../platform/errors.ts";
import { log } from "../platform/log.ts";
import { API_KEY_PREFIX, hashApiKey, isApiKey } from "./api-key.ts";
import { kindOfKey } from "./imported-keys.ts";

/**
 * Returns the hash by which the record of a key is stored, in hex; undefined = the text cannot be a key, so that no read is
 * needed.
 * @throws Error when the pepper of imported keys cannot be read
 */
export async function storedHashOf(text: string): Promise<string | undefined> {
  if (text.startsWith(API_KEY_PREFIX)) return isApiKey(text) ? hashApiKey(text) : undefined;
  const kind = kindOfKey(text);
  if (kind === undefined) return undefined;
  return kind.hash === "sha256"
    ? hashApiKey(text)
    : createHmac("sha256", await pepper())
        .update(text)
        .digest("hex");
}

const CACHE_TTL_MS = 5 * 60_000;
let read: { arn: string; pepper: Promise<string>; at: number } | undefined;

/**
 * Returns the pepper: the setting IMPORTED_KEYS_PEPPER in a local run, a secret in Secrets Manager on AWS, cached for five
 * minutes, so that a correction applies in all processes.
 */
async function pepper(): Promise<string> {
  const arn = settings.importedKeysPepperArn();
  if (arn === undefined) return settings.importedKeysPepper();
  const cached = read?.arn === arn ? read : undefined;
  if (cached && Date.now() - cached.at < CACHE_TTL_MS) return cached.pepper;
  const pepper = readPepper(arn).catch((error: unknown) => {
    if (cached === undefined) {
      read = undefined;
      throw error;
    }
    // Serve the stale pepper if the refresh fails.
    log.error("pepper could not be refreshed", error);
    return cached.pepper;
  });
  read = { arn, pepper, at: Date.now() };
  return pepper;
}

async function readPepper(arn: string): Promise<string> {
  const { current } = await secretVersions(arn);
  if (!current) throw new SettingError(`The secret ${arn} has no value. Store the pepper of the imported keys in it.`);
  return current;
}
