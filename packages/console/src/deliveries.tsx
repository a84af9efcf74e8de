import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import type { DeliveryPage, DeliveryStatus, WebhookRef } from "../../client/src/client.ts";
import {
  ActionButton,
  EmptyState,
  ErrorMessage,
  Field,
  RadioGroup,
  Skeleton,
  StatusBadge,
  Time,
} from "./components.tsx";
import { mergePages } from "./delivery-pages.ts";
import { FormDialog } from "./dialog.tsx";
import { SendEvent } from "./project.tsx";
import { deliveryHref } from "./route.ts";
import { useSignedIn } from "./signed-in.ts";
import { useAction } from "./use-action.ts";
import { useLoaded } from "./use-loaded.ts";
import { deliveryStatuses } from "./vocabulary.ts";

const PAGE_SIZE = 20;
/** The API's largest page, and so the most deliveries that are reloaded at an interval. */
const MAX_LIVE_COUNT = 100;
/** While a delivery is pending. */
const PENDING_INTERVAL_MS = 2_000;
const IDLE_INTERVAL_MS = 3_000;
/** A new event needs this long to become a delivery. */
const FAN_OUT_MS = 300;

interface DeliveryListProps {
  webhookRef: WebhookRef;
  isAdmin: boolean;
  canRecover: boolean;
  openId: string | undefined;
}

/** A webhook's deliveries, newest first, reloaded at an interval. */
export function DeliveryList({ webhookRef, isAdmin, canRecover, openId }: DeliveryListProps) {
  const { canSendEvents, announce } = useSignedIn();
  const [status, setStatus] = useState<DeliveryStatus>();
  const [isRecovering, setRecovering] = useState(false);
  /** Everything shown when "Load more" was last used. */
  const [older, setOlder] = useState<DeliveryPage>();
  const liveCount = useRef(PAGE_SIZE);
  const filter = status === undefined ? {} : { status };

  const {
    data: live,
    error,
    reload,
  } = useLoaded(
    `${webhookRef.webhookId} ${status}`,
    (client) => client.listDeliveries(webhookRef, { ...filter, limit: liveCount.current }),
    ({ items }) => (items.some((each) => each.status === "pending") ? PENDING_INTERVAL_MS : IDLE_INTERVAL_MS),
  );
  const shown = live ? mergePages(live, older?.items ?? []) : [];
  const nextCursor = live?.nextCursor && older ? older.nextCursor : live?.nextCursor;

  const loadMore = useAction(async (client) => {
    const page = await client.listDeliveries(webhookRef, {
      ...filter,
      limit: PAGE_SIZE,
      ...(nextCursor !== undefined && { cursor: nextCursor }),
    });
    const items = [...shown, ...page.items];
    liveCount.current = Math.min(MAX_LIVE_COUNT, items.length);
    setOlder({ ...page, items });
  });

  function filterBy(value: string): void {
    setStatus(deliveryStatuses.find((each) => each === value));
    setOlder(undefined);
    liveCount.current = PAGE_SIZE;
  }
  const lastOpenId = useRef(openId);
  useEffect(() => {
    // When a delivery is closed, the focus returns to its row.
    if (openId === undefined && lastOpenId.current !== undefined) document.getElementById(lastOpenId.current)?.focus();
    lastOpenId.current = openId;
  }, [openId]);
  const closeRecover = useCallback(() => setRecovering(false), []);

  return (
    <section class="list" aria-label="Deliveries">
      {canSendEvents && isAdmin && (
        <SendEvent projectId={webhookRef.projectId} onSent={() => setTimeout(reload, FAN_OUT_MS)} />
      )}
      <div class="bar">
        <label>
          <span>Status</span>
          <select value={status ?? ""} onChange={(event) => filterBy(event.currentTarget.value)}>
            <option value="">all</option>
            {deliveryStatuses.map((each) => (
              <option key={each}>{each}</option>
            ))}
          </select>
        </label>
        <span class={error ? "live stale" : "live"}>{error ? "not live" : "live"}</span>
        {isAdmin && canRecover && (
          <button type="button" class="plain small" onClick={() => setRecovering(true)}>
            Recover…
          </button>
        )}
      </div>
      <ErrorMessage error={error} />
      {live === undefined && !error && <Skeleton rows={5} />}
      {live !== undefined && shown.length === 0 && (
        <EmptyState title={status ? `No ${status} deliveries` : "No deliveries yet"}>
          {status ? undefined : "Deliveries appear here when a deployment event occurs."}
        </EmptyState>
      )}
      {shown.length > 0 && (
        <table>
          <thead>
            <tr>
              <th scope="col">Status</th>
              <th scope="col">Event</th>
              <th scope="col" class="deployment">
                Deployment
              </th>
              <th scope="col">Attempts</th>
              <th scope="col">Created</th>
            </tr>
          </thead>
          <tbody>
            {shown.map((delivery) => (
              <tr key={delivery.id} class={delivery.id === openId ? "linked chosen" : "linked"}>
                <td>
                  <StatusBadge status={delivery.status} />
                </td>
                <td>
                  <a
                    id={delivery.id}
                    href={deliveryHref(webhookRef.projectId, webhookRef.webhookId, delivery.id)}
                    aria-current={delivery.id === openId ? "true" : undefined}
                  >
                    <code>{delivery.event}</code>
                  </a>{" "}
                  {delivery.test && <span class="chip">test</span>}
                </td>
                <td class="deployment">
                  {delivery.deployment_id !== null && <code class="fine">{delivery.deployment_id}</code>}
                </td>
                <td data-label="attempts">
                  <span class="number">{delivery.attempt_count}</span>
                  {delivery.next_attempt_at && (
                    <span class="fine">
                      {" · next "}
                      <Time at={delivery.next_attempt_at} />
                    </span>
                  )}
                </td>
                <td data-label="created">
                  <Time at={delivery.created_at} />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      {nextCursor !== undefined && (
        <div class="more">
          <ActionButton action={loadMore}>Load more</ActionButton>
          <ErrorMessage error={loadMore.error} />
        </div>
      )}
      {isRecovering && (
        <RecoverDialog
          webhookRef={webhookRef}
          onClose={closeRecover}
          onDone={(count) => {
            closeRecover();
            announce(recoveredText(count));
            reload();
          }}
        />
      )}
    </section>
  );
}

function recoveredText(count: number): string {
  if (count === 0) return "There were no deliveries to recover.";
  return count === 1 ? "1 delivery is sent again." : `${count} deliveries are sent again.`;
}

interface RecoverDialogProps {
  webhookRef: WebhookRef;
  onClose(): void;
  onDone(count: number): void;
}

const recoverable = { both: "Failed and held", failed: "Failed", held: "Held" };
type Recoverable = keyof typeof recoverable;

function RecoverDialog({ webhookRef, onClose, onDone }: RecoverDialogProps) {
  const [since, setSince] = useState(() => toLocalInput(new Date(Date.now() - 24 * 3600_000)));
  const [which, setWhich] = useState<Recoverable>("both");
  const time = new Date(since);
  const [sentCount, setSentCount] = useState(0);
  const isClosed = useRef(false);
  useEffect(
    () => () => {
      isClosed.current = true;
    },
    [],
  );
  const recover = useAction(async (client) => {
    const body = { since: time.toISOString(), ...(which !== "both" && { status: which }) };
    let total = 0;
    setSentCount(0);
    for await (const { count } of client.eachRecovery(webhookRef, body)) {
      total += count;
      setSentCount(total);
      if (isClosed.current) break;
    }
    onDone(total);
  });
  const isReady = !Number.isNaN(time.getTime());
  return (
    <FormDialog title="Recover deliveries" action={recover} verb="Recover" isReady={isReady} onClose={onClose}>
      <p>Sends failed and held deliveries again, oldest first. Their ids stay the same.</p>
      <Field
        label="Created since"
        path="since"
        hint="In your local time."
        type="datetime-local"
        error={recover.error}
        value={since}
        onInput={setSince}
      />
      <RadioGroup
        legend="Status"
        values={Object.keys(recoverable) as Recoverable[]}
        chosen={which}
        onChange={setWhich}
        labelOf={(value) => recoverable[value]}
      />
      <p role="status">{sentCount > 0 && `${sentCount} sent again so far.`}</p>
    </FormDialog>
  );
}

/** Formats a time for a `datetime-local` field: local time, to the minute. */
function toLocalInput(time: Date): string {
  return new Date(time.getTime() - time.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}
