import { useEffect, useState } from "preact/hooks";
import type { Attempt, DeliveryWithAttempts, WebhookRef } from "../../../client/src/client.ts";
import { curlOf } from "../data/attempt-request.ts";
import { deliveryHref } from "../data/route.ts";
import { awaitedDeliveries } from "../data/session.ts";
import { useSignedIn } from "../data/signed-in.ts";
import { duration } from "../data/time.ts";
import { triggerMarks } from "../data/vocabulary.ts";
import {
  ActionButton,
  Code,
  CopyButton,
  ErrorMessage,
  Heading,
  Skeleton,
  StatusBadge,
  Time,
} from "../parts/components.tsx";
import { lazy } from "../parts/lazy.tsx";
import { useAction } from "../parts/use-action.ts";
import { useLoaded } from "../parts/use-loaded.ts";
import { isBeingSent, needsWaitingBox, WaitingBox } from "../parts/waiting.tsx";

import { outcomeOf } from "./deliveries.tsx";

const AsSent = lazy(async () => (await import("../parts/as-sent.tsx")).AsSent);

const PENDING_INTERVAL_MS = 1_500;
const DONE_INTERVAL_MS = 10_000;

interface DeliveryDetailProps {
  webhookRef: WebhookRef;
  /** The URL of the webhook now. An attempt may have been sent to an earlier one. */
  url: string;
  deliveryId: string;
  isAdmin: boolean;
  closeHref: string;
}

/** One delivery with its attempts and its payload. */
export function DeliveryDetail({ webhookRef, url, deliveryId, isAdmin, closeHref }: DeliveryDetailProps) {
  const { announce } = useSignedIn();
  const loaded = useLoaded(
    deliveryId,
    (client) => client.getDelivery(webhookRef, deliveryId),
    ({ status }) => (status === "pending" ? PENDING_INTERVAL_MS : DONE_INTERVAL_MS),
  );
  const { data: delivery, error, reload } = loaded;
  useEffect(() => {
    if (!delivery || delivery.status === "pending" || !awaitedDeliveries.delete(deliveryId)) return;
    announce(`${delivery.event} ${outcomeOf(delivery)}.`);
  }, [delivery, deliveryId, announce]);
  const redeliver = useAction(async (client) => {
    await client.redeliver(webhookRef, deliveryId);
    awaitedDeliveries.add(deliveryId);
    announce("The delivery is sent again.");
    reload();
  });
  return (
    <section class="detail" aria-label="Delivery">
      <div class="head">
        <Heading level={2}>{delivery ? <code>{delivery.event}</code> : "Delivery"}</Heading>
        {delivery && <StatusBadge delivery={delivery} />}
        <div class="actions">
          {isAdmin && delivery && <ActionButton action={redeliver}>Resend</ActionButton>}
          <a class="button plain" href={closeHref}>
            Close
          </a>
        </div>
      </div>
      <ErrorMessage error={error ?? redeliver.error} />
      {delivery === undefined && !error && <Skeleton rows={6} />}
      {delivery && <Content delivery={delivery} url={url} projectId={webhookRef.projectId} />}
    </section>
  );
}

interface ContentProps {
  delivery: DeliveryWithAttempts;
  projectId: string;
  url: string;
}

function Content({ delivery, projectId, url }: ContentProps) {
  const payload = JSON.stringify(delivery.payload, null, 2);
  const slowestMs = Math.max(1, ...delivery.attempts.map(({ duration_ms }) => duration_ms));
  return (
    <>
      <dl class="ids">
        <dt>Delivery</dt>
        <dd>
          <code>{delivery.id}</code> <CopyButton text={delivery.id} label="Copy delivery id" />
        </dd>
        {delivery.deployment_id !== null && (
          <>
            <dt>Deployment</dt>
            <dd>
              <code>{delivery.deployment_id}</code>{" "}
              <CopyButton text={delivery.deployment_id} label="Copy deployment id" />
            </dd>
          </>
        )}
        <dt>Created</dt>
        <dd>
          <Time at={delivery.created_at} /> {delivery.test && <span class="chip">test</span>}
        </dd>
      </dl>
      {delivery.superseded_by !== undefined && (
        <p class="note neutral">
          Not sent, because{" "}
          <a href={deliveryHref(projectId, delivery.webhook_id, delivery.superseded_by)}>
            a delivery with a newer state
          </a>{" "}
          of the deployment is.
        </p>
      )}
      <WaitingBox waiting={delivery} />
      <h3>Attempts</h3>
      <ol class="attempts">
        {delivery.attempts.map((attempt) => (
          <AttemptItem key={attempt.number} attempt={attempt} delivery={delivery} url={url} slowestMs={slowestMs} />
        ))}
        {delivery.next_attempt_at !== null && !needsWaitingBox(delivery) && (
          <li class="warning">
            <div class="line">
              <strong>Attempt {delivery.attempt_count + 1}</strong>
              <span class="fine">
                {isBeingSent(delivery) ? (
                  "being sent"
                ) : (
                  <>
                    due <Time at={delivery.next_attempt_at} />
                  </>
                )}
              </span>
            </div>
          </li>
        )}
        {delivery.attempts.length === 0 && (delivery.next_attempt_at === null || needsWaitingBox(delivery)) && (
          <li class="neutral">
            <span class="fine">No attempts yet.</span>
          </li>
        )}
      </ol>
      {delivery.shadow && (
        <>
          <h3>Not sent</h3>
          <p class="fine">
            The webhook was in shadow mode <Time at={delivery.shadow.at} />. Headers of the request:
          </p>
          <Code label="Headers">
            {Object.entries(delivery.shadow.headers)
              .map(([name, value]) => `${name}: ${value}`)
              .join("\n")}
          </Code>
        </>
      )}
      <div class="head">
        <h3>Payload</h3>
        <div class="copies">
          <CopyButton text={curlOf(url, delivery)} label="Copy as curl" />
          <CopyButton text={payload} label="Copy payload" />
        </div>
      </div>
      <Code label="Payload">{payload}</Code>
    </>
  );
}

/** Draws a share from 0 to 1. An SVG, because the page's policy does not allow style attributes. */
const Bar = ({ share }: { share: number }) => (
  <svg class="share" aria-hidden="true" viewBox="0 0 56 5">
    <title>Compared to the slowest attempt</title>
    <rect class="all" width="56" height="5" rx="2.5" />
    <rect width={Math.max(3, 56 * share)} height="5" rx="2.5" />
  </svg>
);

interface AttemptItemProps extends Omit<ContentProps, "projectId"> {
  attempt: Attempt;
  slowestMs: number;
}

function AttemptItem({ attempt, delivery, url, slowestMs }: AttemptItemProps) {
  const [isOpen, setOpen] = useState(false);
  const { number, at, duration_ms, request_count, status_code, error_code, hint, response_excerpt, trigger } = attempt;
  return (
    <li class={error_code === null ? "good" : "bad"}>
      <div class="line">
        <strong>Attempt {number}</strong>
        <code>{status_code ?? error_code}</code>
        <span class="duration">
          <Bar share={duration_ms / slowestMs} />
          <span class="number fine">{duration(duration_ms)}</span>
        </span>
        {triggerMarks[trigger] && <span class="chip">{triggerMarks[trigger]}</span>}
        {request_count > 1 && <span class="chip">{request_count} requests</span>}
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
        <Code look="excerpt" label={`Response to attempt ${number}`}>
          {response_excerpt}
        </Code>
      )}
      <details class="as-sent" onToggle={({ currentTarget }) => setOpen(currentTarget.open)}>
        <summary>As sent</summary>
        {isOpen && <AsSent attempt={attempt} delivery={delivery} url={url} />}
      </details>
    </li>
  );
}
