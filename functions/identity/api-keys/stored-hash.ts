import { createHmac } from "node:crypto";
import { settings } from "../../foundation/platform/env.ts";
import { SettingError } from "../../foundation/platform/errors.ts";
import { secretCache } from "../../foundation/platform/secret-cache.ts";
import { hashApiKey } from "./api-key.ts";
import { kindOfKey } from "./imported-keys.ts";
import { API_KEY_PREFIX, isApiKey } from "./key-format.ts";

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

const pepperOf = secretCache("pepper", ({ current }, arn) => {
  if (current) return current;
  throw new SettingError(`The secret ${arn} has no value. Store the pepper of the imported keys in it.`);
});

/** Returns the pepper: the setting IMPORTED_KEYS_PEPPER in a local run, a secret in Secrets Manager on AWS. */
async function pepper(): Promise<string> {
  const arn = settings.importedKeysPepperArn();
  return arn === undefined ? settings.importedKeysPepper() : pepperOf.get(arn, new Date());
}
