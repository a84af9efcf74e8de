import { meteredReads } from "../../foundation/budgets/metered-reads-store.ts";
import { defineEndpoint, ok } from "../../foundation/http/define-endpoint.ts";
import { endpoints } from "../../foundation/manifest/endpoints.ts";
import { healthOf } from "./health.ts";
import { NOTHING_READ, readHealth } from "./health-store.ts";
import { toListItem } from "./webhook.ts";
import * as webhooks from "./webhook-store.ts";

/** Lists the webhooks of a project with their health, oldest first. */
export const handler = defineEndpoint(endpoints.listWebhooks, {
  async run({ params, identity, now }) {
    const list = await webhooks.list(params.project_id);
    const items: object[] = [];
    await meteredReads({ project: params.project_id, caller: identity }, now, async (reads) => {
      // One after the other: the rows of each show how many more fit into the page.
      for (const webhook of list) {
        const health =
          reads.rowsLeft > 0 && webhook.subscription === undefined
            ? await readHealth(webhook, now, reads)
            : healthOf(webhook, NOTHING_READ, now);
        items.push(toListItem(webhook, health));
      }
    });
    return ok(items);
  },
});
