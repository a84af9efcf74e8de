import { platformPermissions } from "../../foundation/access/platform-permissions.ts";
import { defineEndpoint, ok } from "../../foundation/http/define-endpoint.ts";
import { endpoints } from "../../foundation/manifest/endpoints.ts";
import { toCurrent } from "./api-key.ts";
import * as apiKeys from "./api-key-store.ts";

/** Returns what the credential of this request may do, and the permissions that the platform adds. */
export const handler = defineEndpoint(endpoints.getCurrentCredential, {
  async run({ identity }) {
    const apiKey = identity.keyId === undefined ? undefined : await apiKeys.find(identity.userId, identity.keyId);
    return ok(toCurrent(identity, apiKey, platformPermissions()));
  },
});
