import { defineEndpoint, ok } from "../http/define-endpoint.ts";
import { inParallel } from "../platform/parallel.ts";
import { readHealth } from "./health-store.ts";
import { MAX_WEBHOOKS_PER_PROJECT, toListItem } from "./webhook.ts";
import * as webhooks from "./webhook-store.ts";

/** Lists the webhooks of a project with their health, oldest first. */
export const handler = defineEndpoint("GET /v1/projects/{project_id}/webhooks", {
  async run({ params, now }) {
    const list = await webhooks.list(params.project_id);
    const items = await inParallel(list, MAX_WEBHOOKS_PER_PROJECT, async (webhook) =>
      toListItem(webhook, await readHealth(webhook, now)),
    );
    return ok(items);
  },
});
