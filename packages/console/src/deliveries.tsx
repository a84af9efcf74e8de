import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import type { WebhookPath } from "./api.ts";
import { merge, type Page } from "./delivery-pages.ts";
import { FormDialog } from "./dialog.tsx";
import { ActionButton, Choices, Empty, Failure, Field, StatusBadge, Time, Waiting } from "./parts.tsx";
import { SendEvent } from "./project.tsx";
import { type Delivery, type DeliveryStatus, deliveryStatuses } from "./records.ts";
import { deliveryHref } from "./route.ts";
import { useAction, useLoaded, useSignedIn } from "./signed-in.ts";

const PAGE = 20;
/** The most that one request brings, and so what stays live. */
const MAX_LIVE = 100;
const LIVELY_MS = 2_000;
const QUIET_MS = 3_000;

interface DeliveryListProps {
  path: WebhookPath;
  isAdmin: boolean;
  isEnabled: boolean;
  openId: string | undefined;
}

/** A webhook's deliveries, newest first and live. */
export function DeliveryList({ path, isAdmin, isEnabled, openId }: DeliveryListProps) {
  const { api, sendsEvents, say } = useSignedIn();
  const [status, setStatus] = useState<DeliveryStatus>();
  const [isRecovering, setRecovering] = useState(false);
  /** Those below what is live, by load more. */
  const [older, setOlder] = useState<Page<Delivery>>();
  const liveCount = useRef(PAGE);

  const {
    data: live,
    failure,
    reload,
  } = useLoaded(
    `${path.webhookId} ${status}`,
    (signal) => api.deliveries(path, { status, limit: liveCount.current }, signal),
    ({ items }) => (items.some((each) => each.status === "pending") ? LIVELY_MS : QUIET_MS),
  );
  const shown = live ? merge(live, older?.items ?? []) : [];
  const nextCursor = live?.nextCursor && older ? older.nextCursor : live?.nextCursor;

  const more = useAction(async () => {
    const page = await api.deliveries(path, { status, limit: PAGE, cursor: nextCursor });
    const items = [...shown, ...page.items];
    liveCount.current = Math.min(MAX_LIVE, items.length);
    setOlder({ items, nextCursor: page.nextCursor });
  });

  function choose(next: string): void {
    setStatus(deliveryStatuses.find((each) => each === next));
    setOlder(undefined);
    liveCount.current = PAGE;
  }
  const lastOpen = useRef(openId);
  useEffect(() => {
    // Back from a delivery: the focus goes to where it was opened.
    if (openId === undefined && lastOpen.current !== undefined) document.getElementById(lastOpen.current)?.focus();
    lastOpen.current = openId;
  }, [openId]);
  const closeRecover = useCallback(() => setRecovering(false), []);

  return (
    <section class="list" aria-label="Deliveries">
      {sendsEvents && isAdmin && <SendEvent projectId={path.projectId} onSent={() => setTimeout(reload, 300)} />}
      <div class="bar">
        <label>
          <span>Status</span>
          <select value={status ?? ""} onChange={(event) => choose(event.currentTarget.value)}>
            <option value="">all</option>
            {deliveryStatuses.map((each) => (
              <option key={each}>{each}</option>
            ))}
          </select>
        </label>
        <span class={failure ? "live stale" : "live"}>{failure ? "not live" : "live"}</span>
        {isAdmin && isEnabled && (
          <button type="button" class="plain small" onClick={() => setRecovering(true)}>
            Recover…
          </button>
        )}
      </div>
      <Failure error={failure} />
      {live === undefined && !failure && <Waiting rows={5} />}
      {live !== undefined && shown.length === 0 && (
        <Empty title={status ? `No delivery is ${status}` : "No deliveries yet"}>
          {status ? undefined : "The next deployment event that this webhook wants appears here by itself."}
        </Empty>
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
                    href={deliveryHref(path.projectId, path.webhookId, delivery.id)}
                    aria-current={delivery.id === openId ? "true" : undefined}
                  >
                    <code>{delivery.event}</code>
                  </a>{" "}
                  {delivery.test && <span class="chip">test</span>}
                </td>
                <td class="deployment">
                  <code class="fine">{delivery.deployment_id}</code>
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
          <ActionButton action={more}>Load more</ActionButton>
          <Failure error={more.failure} />
        </div>
      )}
      {isRecovering && (
        <Recover
          path={path}
          onClose={closeRecover}
          onDone={(count) => {
            closeRecover();
            say(count === 0 ? "Nothing failed or was held since then." : `${count} on their way once more.`);
            reload();
          }}
        />
      )}
    </section>
  );
}

interface RecoverProps {
  path: WebhookPath;
  onClose(): void;
  onDone(count: number): void;
}

const recoverable = { both: "Failed and held", failed: "Failed", held: "Held" };
type Recoverable = keyof typeof recoverable;

function Recover({ path, onClose, onDone }: RecoverProps) {
  const { api } = useSignedIn();
  const [since, setSince] = useState(() => localInput(new Date(Date.now() - 24 * 3600_000)));
  const [what, setWhat] = useState<Recoverable>("both");
  const time = new Date(since);
  const recover = useAction(async () => {
    const body = { since: time.toISOString(), ...(what !== "both" && { status: what }) };
    onDone((await api.recover(path, body)).count);
  });
  const isReady = !Number.isNaN(time.getTime());
  return (
    <FormDialog title="Recover deliveries" action={recover} verb="Recover" isReady={isReady} onClose={onClose}>
      <p>Sends once more what did not arrive, oldest first, under the same ids.</p>
      <Field
        label="Events since"
        path="since"
        hint="Your local time."
        type="datetime-local"
        failure={recover.failure}
        value={since}
        onInput={setSince}
      />
      <Choices
        legend="Which"
        values={Object.keys(recoverable) as Recoverable[]}
        chosen={what}
        onChoose={setWhat}
        labelOf={(value) => recoverable[value]}
      />
    </FormDialog>
  );
}

/** A time as `datetime-local` fields take it: local, to the minute. */
function localInput(time: Date): string {
  return new Date(time.getTime() - time.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}
