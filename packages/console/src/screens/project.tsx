import { mostOf } from "../data/chart-points.ts";
import { type ProjectView, type Query, verifyHref, webhookHref } from "../data/route.ts";
import { revealedSecrets } from "../data/session.ts";
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
import { CertificationBadge, HealthBadge, useListStats } from "../parts/health.tsx";
import { lazy } from "../parts/lazy.tsx";
import { SendEvent } from "../parts/send-event.tsx";
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
  const { project, isAdmin, isKnown } = useProject(projectId);
  const loaded = useLoaded(projectId, (client) => client.listWebhooks(projectId), WEBHOOKS_INTERVAL_MS);
  const { data: webhooks, error, reload } = loaded;
  const { dialog, show, close } = useDialog(reload);
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
  const isReady = webhooks !== undefined && isKnown;
  const stats = useListStats(projectId, view === "webhooks" ? webhooks : undefined);
  const top = mostOf([...stats.values()].flatMap(({ buckets }) => buckets));

  return (
    <>
      <div class="head">
        <nav class="crumbs" aria-label="Breadcrumb">
          <a href="#/projects">Projects</a>
          <span aria-hidden="true">/</span>
        </nav>
        <Heading>{project?.name ?? "Project"}</Heading>
        {project && !isAdmin && <Badge tone="neutral">Read-only (viewer)</Badge>}
        {isAdmin && (
          <button type="button" class="primary" onClick={openForm}>
            New webhook
          </button>
        )}
      </div>
      {isKnown && (
        <ProjectTabs projectId={projectId} chosen={tabOf[view]} isAdmin={isAdmin}>
          {isAdmin && <SendEvent projectId={projectId} />}
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
        />
      )}
      {isReady && view === "webhooks" && webhooks.length === 0 && (
        <EmptyState
          title="No webhooks yet"
          action={
            isAdmin && (
              <button type="button" class="primary" onClick={openForm}>
                New webhook
              </button>
            )
          }
          command={`svc webhooks create https://… --events 'deploy.*' --project ${projectId}`}
        >
          A webhook sends this project's deployment events to your URL, signed and with retries.
        </EmptyState>
      )}
      {isReady && view === "webhooks" && webhooks.length > 0 && (
        <Table columns={["Webhook", "Events", "Health", "Last 24 h", "Last success"]}>
          {webhooks.map((webhook) => (
            <tr key={webhook.id} class="linked">
              <td class="strong">
                <a href={webhookHref(projectId, webhook.id)}>{webhook.name ?? <Url of={webhook.url} max={44} />}</a>
                <span class="fine below">
                  <ShortId of={webhook.id} /> {webhook.name !== undefined && <Url of={webhook.url} max={44} />}
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
                <Sparkline stats={stats.get(webhook.id)} top={top} />
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
