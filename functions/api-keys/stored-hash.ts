import { createHmac } from "node:crypto";
import { secretVersions } from "../platform/aws.ts";
import { settings } from "../platform/env.ts";
import { SettingError } from "../platform/errors.ts";
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

let read: { arn: string; pepper: Promise<string> } | undefined;

/**
 * Returns the pepper: the setting IMPORTED_KEYS_PEPPER in a local run, a secret in Secrets Manager on AWS. It is read once by a
 * process: the hashes that were made with it do not change.
 */
async function pepper(): Promise<string> {
  const arn = settings.importedKeysPepperArn();
  if (arn === undefined) return settings.importedKeysPepper();
  if (read?.arn !== arn) {
    read = { arn, pepper: readPepper(arn) };
    read.pepper.catch(() => {
      read = undefined;
    });
  }
  return read.pepper;
}

async function readPepper(arn: string): Promise<string> {
  const { current } = await secretVersions(arn);
  if (!current) throw new SettingError(`The secret ${arn} has no value. Store the pepper of the imported keys in it.`);
  return current;
}
