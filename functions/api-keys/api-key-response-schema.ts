import * as z from "zod/mini";
import { type FieldsOf, id, instant, text } from "../schema/response-schema.ts";
import type { CreatedApiKey, toListItem } from "./api-key.ts";

const base = {
  id: id("Id of the key, for deleting it."),
  name: text("Display name of the key."),
  key_prefix: text("The first 12 characters of the key, to recognize it.", { pattern: "^svc_[0-9a-f]{8}$" }),
  created_at: instant("Time of creation."),
};

/** An API key in a list. */
export const apiKeySchema = z.strictObject({
  ...base,
  last_used_at: z.nullable(instant("Time of the last use, by default accurate to a minute; null = never used.")),
} satisfies FieldsOf<ReturnType<typeof toListItem>>);

/** A new API key. */
export const createdApiKeySchema = z.strictObject({
  ...base,
  key: text("The API key. Returned only once: the service stores only its hash.", { pattern: "^svc_[0-9a-f]{64}$" }),
} satisfies FieldsOf<CreatedApiKey>);
