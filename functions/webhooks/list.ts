import { meteredReads } from "../access/metered-reads-store.ts";
import { defineEndpoint, ok } from "../http/define-endpoint.ts";
import { endpoints } from "../manifest/endpoints.ts";
import { inParallel } from "../platform/parallel.ts";
import { healthOf } from "./health.ts";
import { NOTHING_READ, readHealth } from "./health-store.ts";
import { toListItem } from "./webhook.ts";
import * as webhooks from "./webhook-store.ts";

const PARALLEL_READS = 5;

/** Lists the webhooks of a project with their health, oldest first. */
export const handler = defineEndpoint(endpoints.listWebhooks, {
  async run({ params, now }) {
    const list = await webhooks.list(params.project_id);
    const items = await meteredReads(params.project_id, now, (reads) =>
      inParallel(list, PARALLEL_READS, async (webhook) => {
        const health =
          reads.rowsLeft > 0 ? await readHealth(webhook, now, reads) : healthOf(webhook, NOTHING_READ, now);
        return toListItem(webhook, health);
      }),
    );
    return ok(items);
  },
});
