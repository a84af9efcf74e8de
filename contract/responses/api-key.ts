import * as z from "zod/mini";
import type { Permission } from "../../functions/foundation/manifest/permissions.ts";
import type { CreatedApiKey, toCurrent, toListItem } from "../../functions/identity/api-keys/api-key.ts";
import { count, type FieldsOf, id, instant, oneOf, text } from "./fields.ts";

export const permissionMeanings: Record<Permission, string> = {
  "projects:read": "list the projects",
  "webhooks:read": "list and show webhooks",
  "webhooks:write": "create, change, disable and delete webhooks",
  "deliveries:read": "list and show deliveries",
  "deliveries:write": "send tests, redeliver and recover",
  "events:read": "read the deployment events",
  "webhook-secrets:write": "rotate the secrets of webhooks",
  "keys:read": "list API keys; a scoped key sees only itself",
  "keys:write": "rename and delete API keys; a scoped key only itself",
  "service-accounts:read": "list service accounts and their API keys",
  "service-accounts:write": "delete service accounts and their API keys",
  "audit:read": "read the audit logs",
};

const permission = oneOf<string>("A permission.", permissionMeanings);

const ofImported =
  "They are 12, and begin with `svc_`, unless the platform has imported the key from an earlier service.";

const base = {
  id: id("Id of the key, for deleting it."),
  name: text("Display name of the key."),
  key_prefix: text(`The first characters of the key, to recognize it. ${ofImported}`),
  created_at: instant("Time of creation."),
  permissions: z
    .optional(z.array(permission))
    .check(z.describe("Permissions of the key, also of `platform_permissions`; absent = the same as its user.")),
  project_ids: z
    .optional(z.array(id("Id of a project.")))
    .check(z.describe("The projects that the key can see; absent = all of its user.")),
  expires_at: z.optional(instant("The first moment at which the key is rejected; absent = valid until it is deleted.")),
};

/** An API key in a list. */
export const apiKeySchema = z.strictObject({
  ...base,
  last_used_at: z.nullable(instant("Time of the last use, by default accurate to a minute; null = never used.")),
  last_used_ip: z
    .optional(z.nullable(z.string()))
    .check(z.describe("Only with `include=last_use`. Address of the last use; null = unknown.")),
  last_used_user_agent: z
    .optional(z.nullable(z.string()))
    .check(z.describe("Only with `include=last_use`. The `User-Agent` of the last use; null = unknown.")),
} satisfies FieldsOf<ReturnType<typeof toListItem>>);

/** A new API key. */
export const createdApiKeySchema = z.strictObject({
  ...base,
  key: text("The API key. Returned only once: the service stores only its hash.", { pattern: "^svc_[0-9a-f]{64}$" }),
} satisfies FieldsOf<CreatedApiKey>);

/** The credential of a request. */
export const currentCredentialSchema = z.strictObject({
  type: oneOf("Kind of the credential.", {
    jwt: "a signed-in user",
    api_key: "an API key",
    workflow: "a workflow of a CI system",
  }),
  user_id: text(
    "Id of the user for whom it acts. A workflow acts for itself, as `workflow:<id of the trusted workflow>`.",
  ),
  api_key: z.nullable(
    z.strictObject({
      id: base.id,
      name: base.name,
      key_prefix: text("The first characters of the key that was sent, which may be a previous one after a roll."),
    }),
  ),
  permissions: z.nullable(z.array(z.string())).check(z.describe("Its permissions; null = the same as its user.")),
  project_ids: z
    .nullable(z.array(id("Id of a project.")))
    .check(z.describe("The projects that it can see; null = all of its user.")),
  expires_at: z.nullable(
    instant(
      "The first moment at which it is rejected, for a previous key at the latest the end of its overlap; null = no end set by the service.",
    ),
  ),
  platform_permissions: z
    .optional(z.array(z.strictObject({ name: text("Name."), description: text("What it allows.") })))
    .check(
      z.describe(
        "Permissions of the platform's other services, which credentials may be given beside those listed; absent = none.",
      ),
    ),
} satisfies FieldsOf<ReturnType<typeof toCurrent>>);

/** The answer to a call that ends leaked credentials. */
export const revocationSchema = z.strictObject({
  received: count("Number of credentials in the request, whether they exist or not."),
});
