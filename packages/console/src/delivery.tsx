import type { WebhookPath } from "./api.ts";
import { ActionButton, Code, CopyButton, Failure, Heading, StatusBadge, Time, Waiting } from "./parts.tsx";
import type { Attempt, DeliveryWithAttempts } from "./records.ts";
import { useAction, useLoaded, useSignedIn } from "./signed-in.ts";
import { duration } from "./time.ts";

interface DeliveryDetailProps {
  path: WebhookPath;
  deliveryId: string;
  isAdmin: boolean;
  closeHref: string;
}

/** One delivery: each attempt with what came of it, and what was sent. */
export function DeliveryDetail({ path, deliveryId, isAdmin, closeHref }: DeliveryDetailProps) {
  const { api, say } = useSignedIn();
  const {
    data: delivery,
    failure,
    reload,
  } = useLoaded(
    deliveryId,
    (signal) => api.delivery(path, deliveryId, signal),
    ({ status }) => (status === "pending" ? 1_500 : 10_000),
  );
  const redeliver = useAction(async () => {
    await api.redeliver(path, deliveryId);
    say("It is on its way once more.");
    reload();
  });
  return (
    <section class="detail" aria-label="Delivery">
      <div class="head">
        <Heading level={2}>{delivery ? <code>{delivery.event}</code> : "Delivery"}</Heading>
        {delivery && <StatusBadge status={delivery.status} />}
        <div class="actions">
          {isAdmin && delivery && <ActionButton action={redeliver}>Redeliver</ActionButton>}
          <a class="button plain" href={closeHref}>
            Close
          </a>
        </div>
      </div>
      <Failure error={failure ?? redeliver.failure} />
      {delivery === undefined && !failure && <Waiting rows={6} />}
      {delivery && <Content delivery={delivery} />}
    </section>
  );
}

function Content({ delivery }: { delivery: DeliveryWithAttempts }) {
  const payload = JSON.stringify(delivery.payload, null, 2);
  const slowest = Math.max(1, ...delivery.attempts.map(({ duration_ms }) => duration_ms));
  return (
    <>
      <dl class="ids">
        <dt>Delivery</dt>
        <dd>
          <code>{delivery.id}</code>
        </dd>
        <dt>Deployment</dt>
        <dd>
          <code>{delivery.deployment_id}</code>
        </dd>
        <dt>Created</dt>
        <dd>
          <Time at={delivery.created_at} /> {delivery.test && <span class="chip">test</span>}
        </dd>
      </dl>
      <h3>Attempts</h3>
      <ol class="attempts">
        {delivery.attempts.map((attempt) => (
          <AttemptItem key={attempt.number} attempt={attempt} slowest={slowest} />
        ))}
        {delivery.next_attempt_at !== null && (
          <li class="wait">
            <div class="line">
              <strong>Attempt {delivery.attempt_count + 1}</strong>
              <span class="fine">
                due <Time at={delivery.next_attempt_at} />
              </span>
            </div>
          </li>
        )}
        {delivery.attempts.length === 0 && delivery.next_attempt_at === null && (
          <li class="calm">
            <span class="fine">None was made.</span>
          </li>
        )}
      </ol>
      <div class="head">
        <h3>Payload</h3>
        <CopyButton text={payload} label="Copy payload" />
      </div>
      <Code label="Payload">{payload}</Code>
    </>
  );
}

/** A share of the slowest as a line; the number stands beside it. Styles in attributes are not for this page. */
const Bar = ({ share }: { share: number }) => (
  <svg class="share" aria-hidden="true" viewBox="0 0 56 5">
    <title>Share of the slowest</title>
    <rect class="all" width="56" height="5" rx="2.5" />
    <rect width={Math.max(3, 56 * share)} height="5" rx="2.5" />
  </svg>
);

const triggers = { schedule: "", redeliver: "redelivered", recover: "recovered", test: "test" };

function AttemptItem({ attempt, slowest }: { attempt: Attempt; slowest: number }) {
  const { number, at, duration_ms, status_code, error_code, hint, response_excerpt, trigger } = attempt;
  return (
    <li class={error_code === null ? "good" : "bad"}>
      <div class="line">
        <strong>Attempt {number}</strong>
        <code>{status_code ?? error_code}</code>
        <span class="took">
          <Bar share={duration_ms / slowest} />
          <span class="number fine">{duration(duration_ms)}</span>
        </span>
        {triggers[trigger] && <span class="chip">{triggers[trigger]}</span>}
        <span class="fine end">
          <Time at={at} />
        </span>
      </div>
      {hint !== null && (
        <p class="hint">
          {error_code !== null && <code>{error_code}</code>} {hint}
        </p>
      )}
      {response_excerpt !== null && response_excerpt !== "" && (
        <Code look="excerpt" label={`Answer to attempt ${number}`}>
          {response_excerpt}
        </Code>
      )}
    </li>
  );
}
