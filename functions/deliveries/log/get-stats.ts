import { meteredReads } from "../../foundation/budgets/metered-reads-store.ts";
import { defineEndpoint, ok } from "../../foundation/http/define-endpoint.ts";
import { endpoints } from "../../foundation/manifest/endpoints.ts";
import * as webhooks from "../../webhooks/webhook/webhook-store.ts";
import { LATEST_ATTEMPT_SECONDS, statsOf, statsQuery, statsRange } from "./delivery-stats.ts";
import { readForStats } from "./delivery-stats-store.ts";

/** Returns the statistics of a webhook's attempts, computed from its newest deliveries. */
export const handler = defineEndpoint(endpoints.getWebhookStats, {
  query: statsQuery,
  async run({ params, identity, query, now }) {
    const webhook = await webhooks.getUnsuspended(params);
    const range = statsRange(query.window, now);
    const eventsSince = new Date(range.since.getTime() - LATEST_ATTEMPT_SECONDS * 1000);
    const read = await meteredReads({ project: params.project_id, caller: identity }, now, (reads) =>
      readForStats(reads, webhook.id, eventsSince),
    );
    return ok(statsOf(range, read));
  },
});
