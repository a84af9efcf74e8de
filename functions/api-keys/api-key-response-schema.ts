import * as z from "zod/mini";
import { type FieldsOf, id, instant, text } from "../schema/response-schema.ts";
import type { CreatedApiKey, toListItem } from "./api-key.ts";

const base = {
  id: id("Names the key when it is deleted."),
  name: text("The label it was given."),
  key_prefix: text("The first 12 characters, to tell keys apart.", { pattern: "^svc_[0-9a-f]{8}$" }),
  created_at: instant("When it was made."),
};

/** An API key as the list shows it. */
export const apiKeySchema = z.strictObject({
  ...base,
  last_used_at: z.nullable(instant("When it was used last, to the minute; null before its first use.")),
} satisfies FieldsOf<ReturnType<typeof toListItem>>);

/** An API key as its creator gets it. */
export const createdApiKeySchema = z.strictObject({
  ...base,
  key: text("The key itself. Shown this once: only its hash is stored.", { pattern: "^svc_[0-9a-f]{64}$" }),
} satisfies FieldsOf<CreatedApiKey>);
