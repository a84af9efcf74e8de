import type { Webhook, WebhookInList, WebhookStats } from "../../../client/src/client.ts";
import { approximate } from "../data/time.ts";
import { disabledReasons, healthStates } from "../data/vocabulary.ts";
import { Badge, causeOfDisabling, Time } from "./components.tsx";
import { useEach } from "./use-each.ts";

/** Statistics of the list's webhooks: each request reads up to 1,000 deliveries. */
const LIST_STATS_INTERVAL_MS = 300_000;

export type Health = Webhook["health"];

/** The state of a webhook: disabled or suspended, or how its deliveries fare. */
export function HealthBadge({ webhook }: { webhook: WebhookInList }) {
  const { badge, tone } = healthStates[webhook.health.state] ?? healthStates.healthy;
  const reason = webhook.disabled_reason;
  if (webhook.suspended_at !== undefined) return <Badge tone="bad">suspended</Badge>;
  if (!webhook.enabled)
    return (
      <Badge tone={(reason && disabledReasons[reason]?.tone) ?? "bad"} title={`disabled ${causeOfDisabling(reason)}`}>
        disabled
      </Badge>
    );
  if (webhook.mode === "shadow") return <Badge tone="neutral">shadow</Badge>;
  return <Badge tone={tone}>{badge}</Badge>;
}

/** Whether the receiver passed its last certification. Nothing before the first one. */
export function CertificationBadge({ webhook: { last_certification: last } }: { webhook: WebhookInList }) {
  if (last === undefined) return null;
  return <Badge tone={last.passed ? "good" : "warning"}>{last.passed ? "certified" : "not certified"}</Badge>;
}

/** Whether the state needs a note: undefined = nothing is wrong, or another note says it. */
export function noteOf({ state }: Health) {
  if (state === "new" || state === "healthy" || state === "shadow" || state === "disabled") return undefined;
  return healthStates[state] ?? healthStates.failing;
}

/** The rest of a hint is in the health view, and with each attempt. */
const firstSentence = (text: string): string => text.split(/(?<=\.) /)[0] ?? text;

/** Says what is wrong with a webhook that fails or is slow, and what happens next. */
export function HealthNote({ health }: { health: Health }) {
  const { since, last_error, next_probe_at } = health;
  const found = noteOf(health);
  if (found === undefined) return null;
  const { note, tone } = found;
  return (
    <div class={`note ${tone}`}>
      <p>
        {note} {since !== null && <Age of={since} />}
        {next_probe_at !== null && (
          <>
            , next probe <Time at={next_probe_at} />
          </>
        )}
        .{" "}
        {last_error && (
          <span title={last_error.hint ?? undefined}>{firstSentence(last_error.hint ?? last_error.error_code)}</span>
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
