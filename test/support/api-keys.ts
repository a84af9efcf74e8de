import { randomBytes } from "node:crypto";
import { API_KEY_RANDOM_BYTES, createApiKey, hashApiKey } from "../../functions/identity/api-keys/api-key.ts";
import { changeItem } from "./stored-items.ts";

/** Returns a well-formed API key that is not stored. */
export const unknownApiKey = (): string =>
  createApiKey("nobody", { name: "unknown" }, new Date(), randomBytes(API_KEY_RANDOM_BYTES)).key;

/** Writes attributes of the record of an API key, which the authorizer reads. */
export const changeKey = (key: string, values: object) => changeItem("apiKeys", { key_hash: hashApiKey(key) }, values);
