import { randomBytes } from "node:crypto";
import { API_KEY_RANDOM_BYTES, createApiKey } from "../../functions/api-keys/api-key.ts";

/** Returns a well-formed API key that is not stored. */
export const unknownApiKey = (): string =>
  createApiKey("nobody", { name: "unknown" }, new Date(), randomBytes(API_KEY_RANDOM_BYTES)).key;
