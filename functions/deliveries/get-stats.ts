import { defineEndpoint, ok } from "../http/define-endpoint.ts";
import * as webhooks from "../webhooks/webhook-store.ts";
import { LATEST_ATTEMPT_SECONDS, statsOf, statsQuery, statsRange } from "./delivery-stats.ts";
import { readForStats } from "./delivery-stats-store.ts";

/** Returns the statistics of a webhook's attempts, computed from its newest deliveries. */
export const handler = defineEndpoint("GET /v1/projects/{project_id}/webhooks/{webhook_id}/stats", {
  query: statsQuery,
  async run({ params, query, now }) {
    const webhook = await webhooks.get(params.project_id, params.webhook_id);
    const range = statsRange(query.window, now);
    const eventsSince = new Date(range.since.getTime() - LATEST_ATTEMPT_SECONDS * 1000);
    return ok(statsOf(range, await readForStats(webhook.id, eventsSince)));
  },
});
