import type { Webhook, WebhookInList, WebhookStats } from "../../../client/src/client.ts";
import { approximate } from "../data/time.ts";
import { healthStates } from "../data/vocabulary.ts";
import { Badge, Time, WebhookBadge } from "./components.tsx";
import { useLoaded } from "./use-loaded.ts";

/** Statistics of the list's webhooks: each request reads up to 1,000 deliveries. */
const LIST_STATS_INTERVAL_MS = 300_000;
/** Upper bound on the requests of the list at the same time. */
const MAX_PARALLEL = 4;

export type Health = Webhook["health"];

/** The state of a webhook: disabled or suspended, or how its deliveries fare. */
export function HealthBadge({ webhook }: { webhook: WebhookInList }) {
  const { badge, tone } = healthStates[webhook.health.state] ?? healthStates.healthy;
  if (webhook.health.state === "disabled" || !webhook.enabled) return <WebhookBadge webhook={webhook} />;
  if (webhook.mode === "shadow") return <Badge tone="neutral">shadow</Badge>;
  return <Badge tone={tone}>{badge}</Badge>;
}

/** Whether the receiver passed its last certification. Nothing before the first one. */
export function CertificationBadge({ webhook: { last_certification: last } }: { webhook: WebhookInList }) {
  if (last === undefined) return null;
  return <Badge tone={last.passed ? "good" : "warning"}>{last.passed ? "certified" : "not certified"}</Badge>;
}

/** Says what is wrong with a webhook that fails or is slow, and what happens next. */
export function HealthNote({ health }: { health: Health }) {
  const { state, since, last_success_at, last_error, next_probe_at } = health;
  if (state === "new" || state === "healthy" || state === "shadow" || state === "disabled") return null;
  const { note, tone } = healthStates[state] ?? healthStates.failing;
  return (
    <div class={`note ${tone}`}>
      <p>
        {note} {since !== null && <Age of={since} />}
        {state !== "slow" && last_success_at === null && ", no recent success"}
        {last_success_at !== null && (
          <>
            , last success <Time at={last_success_at} />
          </>
        )}
        {next_probe_at !== null && (
          <>
            , next probe <Time at={next_probe_at} />
          </>
        )}
        .{" "}
        {last_error !== null && (
          <>
            <code>{last_error.error_code}</code> {last_error.hint}
          </>
        )}
      </p>
    </div>
  );
}

/** How long ago a time was. The exact time is its tooltip. */
export const Age = ({ of: at }: { of: string }) => (
  <Time at={at} format={(time, now) => approximate(Math.max(0, now - time) / 1000)} />
);

/** Loads the statistics of the webhooks of a list, by webhook id. One that fails is left out. */
export function useListStats(projectId: string, webhooks: WebhookInList[] | undefined): Map<string, WebhookStats> {
  const ids = (webhooks ?? []).map(({ id }) => id);
  const { data } = useLoaded(
    `${projectId} ${ids.join(" ")}`,
    async (client) => {
      const found = new Map<string, WebhookStats>();
      const left = [...ids];
      const work = async () => {
        for (let webhookId = left.shift(); webhookId !== undefined; webhookId = left.shift()) {
          const stats = await client.getWebhookStats({ projectId, webhookId }).catch(() => undefined);
          if (stats) found.set(webhookId, stats);
        }
      };
      await Promise.all(Array.from({ length: MAX_PARALLEL }, work));
      return found;
    },
    LIST_STATS_INTERVAL_MS,
  );
  return data ?? new Map();
}
