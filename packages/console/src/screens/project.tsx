import { deliveryFiltersOf, eventFiltersOf } from "../data/address-filters.ts";
import { attemptScale } from "../data/chart-points.ts";
import {
  eventsHref,
  type ProjectView,
  projectDeliveriesHref,
  type Query,
  verifyHref,
  webhookHref,
} from "../data/route.ts";
import { revealedSecrets } from "../data/session.ts";
import { cutMiddle } from "../data/short.ts";
import { useSignedIn } from "../data/signed-in.ts";
import { Sparkline } from "../parts/bars.tsx";
import {
  Badge,
  EmptyState,
  ErrorMessage,
  Events,
  Heading,
  ShortId,
  Skeleton,
  Table,
  Time,
  Url,
} from "../parts/components.tsx";
import { SecretDialog, useDialog } from "../parts/dialog.tsx";
import { DeliveryFilterBar, EventFilterBar } from "../parts/filter-bar.tsx";
import { CertificationBadge, HealthBadge, useListStats } from "../parts/health.tsx";
import { lazy } from "../parts/lazy.tsx";
import { SendEventDialog } from "../parts/send-event.tsx";
import { ProjectTabs } from "../parts/tabs.tsx";
import { useLoaded } from "../parts/use-loaded.ts";
import { WebhookForm } from "../parts/webhook-form.tsx";
import { DeliveryList } from "./deliveries.tsx";
import { useProject } from "./projects.tsx";

const EventsView = lazy(async () => (await import("./events.tsx")).EventsView);

const WEBHOOKS_INTERVAL_MS = 10_000;

const tabOf = { webhooks: "Webhooks", deliveries: "Deliveries", events: "Events" } as const;

interface ProjectScreenProps {
  projectId: string;
  view: ProjectView;
  query: Query;
}

/** A project: its webhooks, their deliveries and its deployment events. */
export function ProjectScreen({ projectId, view, query }: ProjectScreenProps) {
  const { canSendEvents } = useSignedIn();
  const { project, isAdmin, isKnown } = useProject(projectId);
  const loaded = useLoaded(projectId, (client) => client.listWebhooks(projectId), WEBHOOKS_INTERVAL_MS);
  const { data: webhooks, error, reload } = loaded;
  const { dialog, show, close, done } = useDialog(reload);
  const openForm = () =>
    show(
      <WebhookForm
        title="New webhook"
        verb="Create webhook"
        projectId={projectId}
        initial={{ url: "", events: ["deploy.succeeded", "deploy.failed"] }}
        urlHint="It must return a 2xx status within 15 seconds."
        save={async (client, { url, name, events, filter, delivery: { headers, ...delivery } }) => {
          const optional = {
            ...(name && { name }),
            ...(filter && { filter }),
            ...(headers && { headers }),
            ...delivery,
          };
          const { id, secret } = await client.createWebhook(projectId, { url, events, ...optional });
          revealedSecrets.set(id, secret);
          reload();
          show(
            <SecretDialog
              title="The webhook's signing secret"
              label="Secret"
              secret={secret}
              onClose={() => {
                close();
                location.hash = webhookHref(projectId, id);
              }}
            >
              <p class="fine">
                The receiver uses it to verify deliveries.{" "}
                <a href={verifyHref(projectId, id)}>Show code with this secret</a>
              </p>
            </SecretDialog>,
          );
        }}
        onClose={close}
      />,
    );
  const simulate = () => show(<SendEventDialog projectId={projectId} onClose={close} onDone={done} />);
  const noWebhooks = {
    children: "A webhook sends this project's deployment events to your URL, signed and with retries.",
    ...(isAdmin && {
      action: (
        <button type="button" class="plain" onClick={openForm}>
          Create the first webhook
        </button>
      ),
      command: `svc webhooks create <url> --events deploy.failed --project ${projectId}`,
    }),
  };
  const nextEvent = {
    children: "Deliveries appear here when a deployment event occurs and a webhook subscribes to it.",
    action: <a href={eventsHref(projectId)}>See the events</a>,
  };
  const isReady = webhooks !== undefined && isKnown;
  const stats = useListStats(projectId, view === "webhooks" ? webhooks : undefined);
  const scale = attemptScale([...stats.values()].flatMap(({ buckets }) => buckets));

  return (
    <>
      <div class="head">
        <Heading>{project?.name ?? "Project"}</Heading>
        {project && !isAdmin && <Badge tone="neutral">Read-only (viewer)</Badge>}
        {isAdmin && (
          <div class="actions">
            {canSendEvents && (
              <button type="button" class="plain" onClick={simulate}>
                Simulate a deployment
              </button>
            )}
            <button type="button" class="primary" onClick={openForm}>
              New webhook
            </button>
          </div>
        )}
      </div>
      {isKnown && (
        <ProjectTabs projectId={projectId} chosen={tabOf[view]} isAdmin={isAdmin}>
          {view === "deliveries" && (
            <DeliveryFilterBar href={projectDeliveriesHref(projectId)} filters={deliveryFiltersOf(query)} />
          )}
          {view === "events" && <EventFilterBar href={eventsHref(projectId)} filters={eventFiltersOf(query)} />}
        </ProjectTabs>
      )}
      {view === "events" && <EventsView projectId={projectId} query={query} />}
      {view !== "events" && <ErrorMessage error={error} />}
      {!isReady && !error && view !== "events" && <Skeleton />}
      {isReady && view === "deliveries" && (
        <DeliveryList
          scope={{ projectId }}
          isAdmin={isAdmin}
          openId={undefined}
          query={query}
          webhookNames={new Map(webhooks.map(({ id, name, url }) => [id, name ?? url.replace(/^https?:\/\//, "")]))}
          next={webhooks.length === 0 ? noWebhooks : nextEvent}
        />
      )}
      {isReady && view === "webhooks" && webhooks.length === 0 && (
        <EmptyState title="No webhooks yet" {...noWebhooks} />
      )}
      {isReady && view === "webhooks" && webhooks.length > 0 && (
        <Table columns={["Webhook", "Events", "Health", "Last 24 h", "Last success"]}>
          {webhooks.map((webhook) => (
            <tr key={webhook.id} class="linked">
              <td class="strong breaks">
                <a href={webhookHref(projectId, webhook.id)} title={webhook.url}>
                  {webhook.name ?? cutMiddle(webhook.url, 44)}
                </a>
                <span class="second">
                  <ShortId id={webhook.id} /> {webhook.name !== undefined && <Url url={webhook.url} />}
                </span>
              </td>
              <td>
                <Events names={webhook.events} max={2} />
              </td>
              <td>
                <span class="badges">
                  <HealthBadge webhook={webhook} />
                  <CertificationBadge webhook={webhook} />
                </span>
              </td>
              <td>
                <Sparkline stats={stats.get(webhook.id)} scale={scale} />
              </td>
              <td data-label="last success">
                {webhook.health.last_success_at === null ? (
                  <span class="fine">none recently</span>
                ) : (
                  <Time at={webhook.health.last_success_at} />
                )}
              </td>
            </tr>
          ))}
        </Table>
      )}
      {dialog}
    </>
  );
}
