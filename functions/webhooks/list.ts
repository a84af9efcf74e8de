import { defineEndpoint, ok } from "../http/define-endpoint.ts";
import { toListItem } from "./webhook.ts";
import * as webhooks from "./webhook-store.ts";

/** Lists the webhooks of a project, oldest first. */
export const handler = defineEndpoint("GET /v1/projects/{project_id}/webhooks", {
  async run({ params }) {
    const list = await webhooks.list(params.project_id);
    return ok(list.map(toListItem));
  },
});
