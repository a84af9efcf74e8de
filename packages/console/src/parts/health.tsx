import type { Webhook, WebhookInList, WebhookStats } from "../../../client/src/client.ts";
import { approximate } from "../data/time.ts";
import { healthStates } from "../data/vocabulary.ts";
import { Badge, Time, WebhookBadge } from "./components.tsx";
import { useEach } from "./use-each.ts";

/** Statistics of the list's webhooks: each request reads up to 1,000 deliveries. */
const LIST_STATS_INTERVAL_MS = 300_000;

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
export const useListStats = (projectId: string, webhooks: WebhookInList[] = []): Map<string, WebhookStats> =>
  useEach(
    projectId,
    webhooks.map(({ id }) => id),
    (client, webhookId) => client.getWebhookStats({ projectId, webhookId }),
    LIST_STATS_INTERVAL_MS,
  );
