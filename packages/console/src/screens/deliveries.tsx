import { useEffect, useRef, useState } from "preact/hooks";
import type { Client, Delivery, WebhookRef } from "../../../client/src/client.ts";
import { deliveryFiltersOf } from "../data/address-filters.ts";
import { deliveryHref, projectDeliveriesHref, type Query, webhookHref, withQuery } from "../data/route.ts";
import { duration } from "../data/time.ts";
import {
  EmptyState,
  ErrorMessage,
  isFailing,
  LoadMore,
  ShortId,
  Skeleton,
  StatusBadge,
  Table,
  Time,
} from "../parts/components.tsx";
import { useDialog } from "../parts/dialog.tsx";
import { DeliveryFilterBar } from "../parts/filter-bar.tsx";
import { lazy } from "../parts/lazy.tsx";
import { EVENT_SENT } from "../parts/send-event.tsx";
import { usePages } from "../parts/use-pages.ts";
import { WaitingNote } from "../parts/waiting.tsx";

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
  openId: string | undefined;
  query: Query;
  /** The names of the project's webhooks by id, or their URLs without scheme, for a list of all webhooks. */
  webhookNames?: Map<string, string>;
}

/** Deliveries of a webhook or of a project, newest first, reloaded at an interval. */
export function DeliveryList({ scope, isAdmin, openId, query, webhookNames }: DeliveryListProps) {
  const { projectId, webhookId } = scope;
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
  const { dialog, show, close } = useDialog(reload);
  const isFiltered = Object.keys(filters).length > 0;
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

  useEffect(() => {
    const reloadSoon = () => setTimeout(reload, FAN_OUT_MS);
    addEventListener(EVENT_SENT, reloadSoon);
    return () => removeEventListener(EVENT_SENT, reloadSoon);
  }, [reload]);

  const lastOpenId = useRef(openId);
  useEffect(() => {
    // When a delivery is closed, the focus returns to its row.
    if (openId === undefined && lastOpenId.current !== undefined) document.getElementById(lastOpenId.current)?.focus();
    lastOpenId.current = openId;
  }, [openId]);

  return (
    <section class="list" aria-label="Deliveries">
      <DeliveryFilterBar href={href} filters={filters}>
        <span class={error ? "live stale" : "live"}>{error ? "not live" : "live"}</span>
        {isAdmin && selection.chosen.length > 0 && (
          <button type="button" class="primary small" onClick={resend}>
            Resend {selection.chosen.length}
          </button>
        )}
      </DeliveryFilterBar>
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
            ...(isAdmin
              ? [
                  {
                    title: "Selected",
                    class: "select",
                    head: (
                      <label>
                        <span class="visually-hidden">Select all shown</span>
                        <input type="checkbox" checked={selection.isAll} onChange={selection.toggleAll} />
                      </label>
                    ),
                  },
                ]
              : []),
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
                    <span class="visually-hidden">Select {nameOf(delivery, webhookNames)}</span>
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
                  aria-label={nameOf(delivery, webhookNames)}
                >
                  <code>{delivery.event}</code>
                </a>{" "}
                {delivery.test && <span class="chip">test</span>}
              </td>
              {webhookNames && (
                <td class="webhook">{webhookNames.get(delivery.webhook_id) ?? <span class="fine">deleted</span>}</td>
              )}
              <td class="deployment">{delivery.deployment_id !== null && <ShortId of={delivery.deployment_id} />}</td>
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

const resultIn = ({ error_code, status_code }: NonNullable<Delivery["last_attempt"]>): string =>
  error_code === null || error_code === "http_status" ? String(status_code) : error_code;

/** `401 · 12 ms`, `timeout · 15 s`. */
const resultOf = (attempt: NonNullable<Delivery["last_attempt"]>): string =>
  `${resultIn(attempt)} · ${duration(attempt.duration_ms)}`;

/** `succeeded: 200 in 12 ms` */
export const outcomeOf = ({ status, last_attempt }: Pick<Delivery, "status" | "last_attempt">): string =>
  last_attempt ? `${status}: ${resultIn(last_attempt)} in ${duration(last_attempt.duration_ms)}` : status;

/** Tells a row from the others to somebody who hears a list of links: `deploy.failed to Chat, failing, 10:21:14 PM`. */
function nameOf(delivery: Delivery, webhookNames: Map<string, string> | undefined): string {
  const webhook = webhookNames?.get(delivery.webhook_id);
  const time = new Date(delivery.created_at).toLocaleTimeString();
  const status = isFailing(delivery) ? "failing" : delivery.status;
  return `${delivery.event}${webhook === undefined ? "" : ` to ${webhook}`}, ${status}, ${time}`;
}

function emptyTitle(isFiltered: boolean, hasMore: boolean): string {
  if (hasMore) return "None found so far: older deliveries were not searched";
  return isFiltered ? "No deliveries match the filters" : "No deliveries yet";
}

/** @param none what to say if none was sent */
export function sentAgainText(count: number, none: string): string {
  if (count === 0) return none;
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
