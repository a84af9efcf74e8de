import { defineEndpoint, ok } from "../../foundation/http/define-endpoint.ts";
import { endpoints } from "../../foundation/manifest/endpoints.ts";
import { toListItem } from "./service-account.ts";
import * as serviceAccounts from "./service-account-store.ts";

/** Lists the service accounts of a project, oldest first. */
export const handler = defineEndpoint(endpoints.listServiceAccounts, {
  async run({ params }) {
    return ok((await serviceAccounts.list(params.project_id)).map(toListItem));
  },
});
