import { isNarrow } from "../access/identity.ts";
import { defineEndpoint, ok } from "../http/define-endpoint.ts";
import { endpoints } from "../manifest/endpoints.ts";
import { toListItem } from "./api-key.ts";
import { listQuery } from "./api-key-input.ts";
import * as apiKeys from "./api-key-store.ts";

/** Lists the API keys of the caller, oldest first, with the time of their last use. A narrow key lists only itself. */
export const handler = defineEndpoint(endpoints.listApiKeys, {
  query: listQuery,
  async run({ identity, query }) {
    const { userId, keyId = "none" } = identity;
    const keys = await apiKeys.list(userId, isNarrow(identity) ? keyId : undefined);
    return ok(keys.map((apiKey) => toListItem(apiKey, query.include)));
  },
});
