import { useEffect, useRef, useState } from "preact/hooks";
import type { Client, Delivery, WebhookRef } from "../../../client/src/client.ts";
import { deliveryFiltersOf } from "../data/address-filters.ts";
import { deliveryHref, projectDeliveriesHref, type Query, webhookHref, withQuery } from "../data/route.ts";
import { shortId } from "../data/short.ts";
import { clockTime, duration } from "../data/time.ts";
import {
  Badge,
  EmptyState,
  type EmptyStateProps,
  ErrorMessage,
  LoadMore,
  ShortId,
  Skeleton,
  StatusBadge,
  statusOf,
  Table,
  Time,
} from "../parts/components.tsx";
import { useDialog } from "../parts/dialog.tsx";
import { lazy } from "../parts/lazy.tsx";
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
  /** The name of the webhook, for a list of one. */
  webhookName?: string;
  /** What the user may do next while the list is empty. */
  next?: Omit<EmptyStateProps, "title">;
}

/** Deliveries of a webhook or of a project, newest first, reloaded at an interval. */
export function DeliveryList(props: DeliveryListProps) {
  const { scope, isAdmin, openId, query, webhookNames, webhookName, next } = props;
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
  const nameOf = (delivery: Delivery) => {
    const webhook = webhookName ?? webhookNames?.get(delivery.webhook_id) ?? "a deleted webhook";
    return `${delivery.event} to ${webhook}, ${statusOf(delivery)}, ${clockTime(delivery.created_at)}`;
  };
  const selectAll = (
    <label>
      <input type="checkbox" checked={selection.isAll} onChange={selection.toggleAll} />
      <span>Select all shown</span>
    </label>
  );
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
      {error && <Badge tone="bad">not live</Badge>}
      <ErrorMessage error={error} />
      {!isLoaded && !error && <Skeleton rows={5} />}
      {isLoaded && shown.length === 0 && (
        <EmptyState
          title={emptyTitle(isFiltered, loadMore !== undefined)}
          {...(isFiltered ? { children: <a href={href}>Clear filters</a> } : next)}
        />
      )}
      {shown.length > 0 && (
        <Table
          columns={[
            ...(isAdmin ? [{ title: "Selected", class: "select", content: selectAll }] : []),
            "Status",
            "Event",
            ...(webhookNames ? ["Webhook"] : []),
            { title: "Last attempt", class: "in-full" },
            { title: "Attempts", class: "in-full" },
            { title: "Next", class: "in-full" },
            { title: "Deployment", class: "in-full wide-only" },
            "ID",
            "Created",
          ]}
        >
          {shown.map((delivery) => (
            <tr key={delivery.id} class={delivery.id === openId ? "linked chosen" : "linked"}>
              {isAdmin && (
                <td class="select">
                  <label>
                    <span class="visually-hidden">
                      Select {nameOf(delivery)} ({shortId(delivery.id)})
                    </span>
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
                  aria-label={nameOf(delivery)}
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
              <td class="in-full" data-label={delivery.last_attempt ? "last attempt" : undefined}>
                {delivery.last_attempt && resultOf(delivery.last_attempt)}
              </td>
              <td class="in-full" data-label="attempts">
                <span class="number">{delivery.attempt_count}</span>
              </td>
              <td class="in-full">
                <WaitingNote waiting={delivery} />
              </td>
              <td class="in-full wide-only">
                {delivery.deployment_id !== null && <ShortId id={delivery.deployment_id} />}
              </td>
              <td>
                <ShortId id={delivery.id} />
              </td>
              <td>
                <Time at={delivery.created_at} />
              </td>
            </tr>
          ))}
        </Table>
      )}
      {loadMore && <LoadMore action={loadMore} />}
      {selection.chosen.length > 0 && (
        <div class="bar">
          <span class="fine">{selection.chosen.length} selected</span>
          <button type="button" class="primary small" onClick={resend}>
            Resend {selection.chosen.length}
          </button>
        </div>
      )}
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
