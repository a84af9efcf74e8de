import { useRef } from "preact/hooks";
import type { Client, DeploymentEvent } from "../../../client/src/client.ts";
import {
  type Deployment,
  type DeploymentStep,
  deploymentsOf,
  mergeEvents,
  stateAfterEvent,
} from "../../../client/src/deployment-timeline.ts";
import { detailOf } from "../../../client/src/event-detail.ts";
import { type EventFilters, eventFiltersOf } from "../data/address-filters.ts";
import { eventsHref, projectDeliveriesHref, type Query, withQuery } from "../data/route.ts";
import { approximate, elapsed } from "../data/time.ts";
import { deploymentTone } from "../data/vocabulary.ts";
import { Badge, Code, CopyButton, EmptyState, ErrorMessage, LoadMore, Skeleton, Time } from "../parts/components.tsx";
import { useAction } from "../parts/use-action.ts";
import { useLoaded } from "../parts/use-loaded.ts";

const PAGE_SIZE = 100;
const FOLLOW_INTERVAL_MS = 5_000;
/** Upper bound on the pages that one step reads. A page may be empty although more follow. */
const MAX_PAGES = 10;
/** An event that arrives later than this after its time is marked. */
const LATE_MS = 60_000;

/** The part of a project's feed that is loaded. */
interface Feed {
  key: string;
  events: DeploymentEvent[];
  /** Leads to older events; undefined when all are loaded. */
  olderCursor: string | undefined;
  /** Leads to the events that are stored later. */
  followCursor: string | undefined;
}

/** A project's deployments of the last 30 days, newest first. Follows the feed while the page is visible. */
export function EventsView({ projectId, query }: { projectId: string; query: Query }) {
  const href = eventsHref(projectId);
  const filters = eventFiltersOf(query);
  const { feed, error, loadOlder } = useFeed(projectId, filters);
  const deployments = feed ? deploymentsOf(feed.events) : [];
  const isFiltered = Object.keys(filters).length > 0;
  return (
    <section class="list" aria-label="Events">
      {error && <Badge tone="bad">not live</Badge>}
      <ErrorMessage error={error} />
      {feed === undefined && !error && <Skeleton rows={5} />}
      {feed !== undefined && deployments.length === 0 && (
        <EmptyState title={isFiltered ? "No events match the filters" : "No deployments in the last 30 days"}>
          {isFiltered ? <a href={href}>Clear filters</a> : "Deployments appear here as the pipeline reports them."}
        </EmptyState>
      )}
      {deployments.length > 0 && (
        <ol class="deployments">
          {deployments.map((deployment) => (
            <DeploymentItem key={deployment.id} projectId={projectId} deployment={deployment} />
          ))}
        </ol>
      )}
      {feed?.olderCursor !== undefined && <LoadMore action={loadOlder} />}
    </section>
  );
}

function useFeed(projectId: string, filters: EventFilters) {
  const key = withQuery(projectId, { ...filters });
  const latest = useRef<Feed>(undefined);
  const query = { ...filters, limit: PAGE_SIZE };

  const { data, error, reload } = useLoaded(
    key,
    async (client) => {
      const known = latest.current?.key === key ? latest.current : undefined;
      const loaded =
        known?.followCursor === undefined
          ? await newestOf(client)
          : await followed(client, { ...known, followCursor: known.followCursor });
      // Older events may have been added meanwhile.
      const now = latest.current?.key === key ? latest.current : loaded;
      latest.current = {
        ...now,
        ...loaded,
        events: mergeEvents(now.events, loaded.events),
        olderCursor: now.olderCursor,
      };
      return latest.current;
    },
    FOLLOW_INTERVAL_MS,
  );

  async function newestOf(client: Client): Promise<Feed> {
    const first = await client.listEvents(projectId, query);
    return { key, events: first.items, olderCursor: first.nextCursor, followCursor: first.followCursor };
  }

  async function followed(client: Client, known: Feed & { followCursor: string }): Promise<Feed> {
    let { events, followCursor } = known;
    for (let pages = 0; pages < MAX_PAGES; pages++) {
      const page = await client.listEvents(projectId, { ...query, order: "oldest", after: followCursor });
      events = mergeEvents(events, page.items);
      followCursor = page.nextCursor ?? page.followCursor ?? followCursor;
      if (page.nextCursor === undefined) break;
    }
    return { ...known, events, followCursor };
  }

  const loadOlder = useAction(async (client) => {
    let cursor = latest.current?.olderCursor;
    for (let pages = 0; cursor !== undefined && pages < MAX_PAGES; pages++) {
      const page = await client.listEvents(projectId, { ...query, after: cursor });
      const known = latest.current;
      if (known?.key !== key) return;
      cursor = page.nextCursor;
      latest.current = { ...known, events: mergeEvents(known.events, page.items), olderCursor: cursor };
      if (page.items.length > 0) break;
    }
    reload();
  });

  return { feed: data, error, loadOlder };
}

function DeploymentItem({ projectId, deployment }: { projectId: string; deployment: Deployment }) {
  const { id, state, steps, durationMs } = deployment;
  return (
    <li class="deployment-card">
      <div class="line">
        <Badge tone={deploymentTone(state)}>{state}</Badge>
        <h2>
          <code>{id}</code>
        </h2>
        <CopyButton text={id} name="Copy id" />
        {durationMs !== null && <span class="fine unit">took {elapsed(durationMs)}</span>}
        <a class="end" href={withQuery(projectDeliveriesHref(projectId), { deployment_id: id })}>
          Deliveries
        </a>
      </div>
      <ol class="steps">
        {steps.map((step) => (
          <StepItem key={step.event.id} {...step} />
        ))}
      </ol>
    </li>
  );
}

function StepItem({ event, sincePreviousMs }: DeploymentStep) {
  const detail = detailOf(event);
  const delayMs = Date.parse(event.received_at) - Date.parse(event.timestamp);
  return (
    <li class={deploymentTone(stateAfterEvent(event))}>
      <details>
        <summary>
          <code>{event.event}</code> <Time at={event.timestamp} />
          {sincePreviousMs !== null && <span class="fine unit"> +{elapsed(sincePreviousMs)}</span>}
          {delayMs > LATE_MS && <span class="chip">received {approximate(delayMs / 1000)} later</span>}
          {detail !== undefined && <span class="detail-text">{detail}</span>}
        </summary>
        <Code label={`Payload of ${event.event}`}>{JSON.stringify(event.payload, null, 2)}</Code>
      </details>
    </li>
  );
}
