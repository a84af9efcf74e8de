import { useEffect, useRef, useState } from "preact/hooks";
import type { Client, Delivery, WebhookRef } from "../../../client/src/client.ts";
import { deliveryFiltersOf } from "../data/address-filters.ts";
import { deliveryHref, projectDeliveriesHref, type Query, webhookHref, withQuery } from "../data/route.ts";
import { useSignedIn } from "../data/signed-in.ts";
import { duration } from "../data/time.ts";
import { EmptyState, ErrorMessage, LoadMore, Skeleton, StatusBadge, Table, Time } from "../parts/components.tsx";
import { useDialog } from "../parts/dialog.tsx";
import { DeliveryFilterBar } from "../parts/filter-bar.tsx";
import { lazy } from "../parts/lazy.tsx";
import { SendEvent } from "../parts/send-event.tsx";
import { usePages } from "../parts/use-pages.ts";
import { WaitingNote } from "../parts/waiting.tsx";

const RecoverDialog = lazy(async () => (await import("../parts/recover.tsx")).RecoverDialog);
const ResendDialog = lazy(async () => (await import("../parts/resend.tsx")).ResendDialog);

const PAGE_SIZE = 20;
/** The API's largest page, and so the most deliveries that are reloaded at an interval. */
const MAX_LIVE_COUNT = 100;
/** While a delivery is pending. */
const PENDING_INTERVAL_MS = 2_000;
const IDLE_INTERVAL_MS = 3_000;
/** A filtered list, or one of a project, may read a thousand rows, so it is reloaded less often. */
const SEARCH_INTERVAL_MS = 10_000;
/** A new event needs this long to become a delivery. */
const FAN_OUT_MS = 300;

/** A webhook, or all webhooks of a project. */
interface Scope {
  projectId: string;
  /** Absent = all webhooks of the project. */
  webhookId?: string;
}

interface DeliveryListProps {
  scope: Scope;
  isAdmin: boolean;
  canRecover: boolean;
  openId: string | undefined;
  query: Query;
  /** The names of the project's webhooks by id, or their URLs without scheme, for a list of all webhooks. */
  webhookNames?: Map<string, string>;
}

/** Deliveries of a webhook or of a project, newest first, reloaded at an interval. */
export function DeliveryList({ scope, isAdmin, canRecover, openId, query, webhookNames }: DeliveryListProps) {
  const { projectId, webhookId } = scope;
  const { canSendEvents } = useSignedIn();
  const filters = deliveryFiltersOf(query);
  const href = webhookId === undefined ? projectDeliveriesHref(projectId) : webhookHref(projectId, webhookId);
  const isSearch = webhookId === undefined || Object.keys(filters).some((name) => name !== "status");
  const { shown, isLoaded, error, reload, loadMore } = usePages(
    withQuery(`${projectId} ${webhookId}`, { ...filters }),
    {
      load: (client, page) => listIn(client, scope, { ...filters, ...page }),
      intervalMs(items) {
        if (isSearch) return SEARCH_INTERVAL_MS;
        return items.some(({ status }) => status === "pending") ? PENDING_INTERVAL_MS : IDLE_INTERVAL_MS;
      },
      pageSize: PAGE_SIZE,
      maxLiveCount: MAX_LIVE_COUNT,
    },
  );
  const selection = useSelection(shown);
  const { dialog, show, close, done } = useDialog(reload);
  const isFiltered = Object.keys(filters).length > 0;
  const recover =
    isAdmin && canRecover && webhookId !== undefined
      ? () =>
          show(
            <RecoverDialog
              webhookRef={{ projectId, webhookId }}
              onClose={close}
              onDone={(count) => done(recoveredText(count))}
            />,
          )
      : undefined;
  const resend = () =>
    show(
      <ResendDialog
        projectId={projectId}
        deliveries={selection.chosen}
        onClose={close}
        onSent={() => {
          selection.clear();
          reload();
        }}
      />,
    );

  const lastOpenId = useRef(openId);
  useEffect(() => {
    // When a delivery is closed, the focus returns to its row.
    if (openId === undefined && lastOpenId.current !== undefined) document.getElementById(lastOpenId.current)?.focus();
    lastOpenId.current = openId;
  }, [openId]);

  return (
    <section class="list" aria-label="Deliveries">
      {canSendEvents && isAdmin && <SendEvent projectId={projectId} onSent={() => setTimeout(reload, FAN_OUT_MS)} />}
      <DeliveryFilterBar href={href} filters={filters} />
      <div class="bar">
        {isAdmin && shown.length > 0 && (
          <label>
            <input type="checkbox" checked={selection.isAll} onChange={selection.toggleAll} />
            <span>Select all shown</span>
          </label>
        )}
        {isAdmin && selection.chosen.length > 0 && (
          <button type="button" class="plain small" onClick={resend}>
            Resend {selection.chosen.length}
          </button>
        )}
        <span class={error ? "live stale" : "live"}>{error ? "not live" : "live"}</span>
        {recover && (
          <button type="button" class="plain small" onClick={recover}>
            Recover…
          </button>
        )}
      </div>
      <ErrorMessage error={error} />
      {!isLoaded && !error && <Skeleton rows={5} />}
      {isLoaded && shown.length === 0 && (
        <EmptyState title={emptyTitle(isFiltered, loadMore !== undefined)}>
          {isFiltered ? (
            <a href={href}>Clear filters</a>
          ) : webhookNames?.size === 0 ? (
            "Create a webhook first: a delivery is an event on its way to a webhook."
          ) : (
            "Deliveries appear here when a deployment event occurs and a webhook subscribes to it."
          )}
        </EmptyState>
      )}
      {shown.length > 0 && (
        <Table
          columns={[
            ...(isAdmin ? [{ title: "Selected", isHidden: true }] : []),
            "Status",
            "Event",
            ...(webhookNames ? ["Webhook"] : []),
            { title: "Deployment", class: "deployment" },
            "Attempts",
            "Last attempt",
            { title: "Created", class: "created" },
          ]}
        >
          {shown.map((delivery) => (
            <tr key={delivery.id} class={delivery.id === openId ? "linked chosen" : "linked"}>
              {isAdmin && (
                <td class="select">
                  <label>
                    <span class="visually-hidden">Select delivery {delivery.id}</span>
                    <input
                      type="checkbox"
                      checked={selection.has(delivery)}
                      onChange={() => selection.toggle(delivery)}
                    />
                  </label>
                </td>
              )}
              <td>
                <StatusBadge delivery={delivery} />
              </td>
              <td>
                <a
                  id={delivery.id}
                  // The link covers the row.
                  title={delivery.last_attempt?.hint ?? undefined}
                  href={withQuery(
                    deliveryHref(projectId, delivery.webhook_id, delivery.id),
                    webhookId === undefined ? {} : { ...filters },
                  )}
                  aria-current={delivery.id === openId ? "true" : undefined}
                >
                  <code>{delivery.event}</code>
                </a>{" "}
                {delivery.test && <span class="chip">test</span>}
              </td>
              {webhookNames && (
                <td class="webhook">{webhookNames.get(delivery.webhook_id) ?? <span class="fine">deleted</span>}</td>
              )}
              <td class="deployment">
                {delivery.deployment_id !== null && <code class="fine">{delivery.deployment_id}</code>}
              </td>
              <td class="waits" data-label="attempts">
                <span class="number">{delivery.attempt_count}</span>
                <WaitingNote waiting={delivery} />
              </td>
              <td data-label={delivery.last_attempt ? "last attempt" : undefined}>
                {delivery.last_attempt && resultOf(delivery.last_attempt)}
              </td>
              <td class="created" data-label="created">
                <Time at={delivery.created_at} />
              </td>
            </tr>
          ))}
        </Table>
      )}
      {loadMore && <LoadMore action={loadMore} />}
      {dialog}
    </section>
  );
}

/** `401 · 12 ms`, `timeout · 15 s`. */
function resultOf({ error_code, status_code, duration_ms }: NonNullable<Delivery["last_attempt"]>): string {
  const result = error_code === null || error_code === "http_status" ? String(status_code) : error_code;
  return `${result} · ${duration(duration_ms)}`;
}

function emptyTitle(isFiltered: boolean, hasMore: boolean): string {
  if (hasMore) return "None found so far: older deliveries were not searched";
  return isFiltered ? "No deliveries match the filters" : "No deliveries yet";
}

function recoveredText(count: number): string {
  if (count === 0) return "There were no deliveries to recover.";
  return count === 1 ? "1 delivery is sent again." : `${count} deliveries are sent again.`;
}

function listIn(client: Client, { projectId, webhookId }: Scope, query: Parameters<Client["listDeliveries"]>[1]) {
  if (webhookId === undefined) return client.listProjectDeliveries(projectId, query);
  return client.listDeliveries({ projectId, webhookId } satisfies WebhookRef, query);
}

/** The deliveries that the user has chosen. Those that are no longer shown are not part of it. */
function useSelection(shown: Delivery[]) {
  const [ids, setIds] = useState<ReadonlySet<string>>(new Set());
  const chosen = shown.filter(({ id }) => ids.has(id));
  const isAll = shown.length > 0 && chosen.length === shown.length;
  return {
    chosen,
    isAll,
    has: ({ id }: Delivery) => ids.has(id),
    toggle: ({ id }: Delivery) => setIds(new Set(ids.has(id) ? [...ids].filter((each) => each !== id) : [...ids, id])),
    toggleAll: () => setIds(new Set(isAll ? [] : shown.map(({ id }) => id))),
    clear: () => setIds(new Set()),
  };
}
