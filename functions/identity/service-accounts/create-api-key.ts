import { randomBytes } from "node:crypto";
import { serviceAccountUserId } from "../../foundation/access/identity.ts";
import { requireActive } from "../../foundation/access/suspension-store.ts";
import { created, defineEndpoint } from "../../foundation/http/define-endpoint.ts";
import { endpoints } from "../../foundation/manifest/endpoints.ts";
import { invalidField } from "../../foundation/schema/input.ts";
import { API_KEY_RANDOM_BYTES, createApiKey, toCreated } from "../api-keys/api-key.ts";
import { apiKeyInput } from "../api-keys/api-key-input.ts";
import * as serviceAccounts from "./service-account-store.ts";

/** Creates an API key for a service account. This is the only response that contains the key. */
export const handler = defineEndpoint(endpoints.createServiceAccountApiKey, {
  input: apiKeyInput,
  async run({ params: { project_id, service_account_id }, input, actor, onceOnly, now }) {
    await requireActive(project_id);
    const other = input.project_ids?.findIndex((id) => id !== project_id) ?? -1;
    if (other !== -1) throw invalidField(`project_ids.${other}`, "is not the project of the service account");
    const owner = serviceAccountUserId(service_account_id);
    const { apiKey, key } = createApiKey(owner, input, now, randomBytes(API_KEY_RANDOM_BYTES));
    const response = toCreated(apiKey, key);
    await serviceAccounts.insertKey(project_id, service_account_id, apiKey, actor, onceOnly(response));
    return created(response);
  },
});
