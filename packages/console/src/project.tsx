import { useState } from "preact/hooks";
import type { CreatedWebhook, EventName, WebhookEventName } from "../../client/src/client.ts";
import {
  ActionButton,
  Badge,
  EmptyState,
  ErrorMessage,
  EventCheckboxes,
  Events,
  Field,
  Heading,
  Skeleton,
  Time,
  WebhookBadge,
} from "./components.tsx";
import { sendDeploymentEvent } from "./deployment-events.ts";
import { FormDialog, SecretDialog } from "./dialog.tsx";
import { useProject } from "./projects.tsx";
import { verifyHref, webhookHref } from "./route.ts";
import { revealedSecrets } from "./session.ts";
import { useSignedIn } from "./signed-in.ts";
import { useAction } from "./use-action.ts";
import { useLoaded } from "./use-loaded.ts";
import { eventNames } from "./vocabulary.ts";

const WEBHOOKS_INTERVAL_MS = 10_000;

/** A project's webhooks. */
export function ProjectScreen({ projectId }: { projectId: string }) {
  const { canSendEvents } = useSignedIn();
  const { project, isAdmin, isKnown } = useProject(projectId);
  const {
    data: webhooks,
    error,
    reload,
  } = useLoaded(
    projectId,
    (client) => client.listWebhooks(projectId),
    () => WEBHOOKS_INTERVAL_MS,
  );
  const [open, setOpen] = useState<"create" | CreatedWebhook>();
  const close = () => setOpen(undefined);
  const isReady = webhooks !== undefined && isKnown;

  return (
    <>
      <nav class="crumbs" aria-label="Breadcrumb">
        <a href="#/projects">Projects</a>
      </nav>
      <div class="head">
        <Heading>{project?.name ?? "Project"}</Heading>
        {project && !isAdmin && <Badge tone="neutral">Read-only (viewer)</Badge>}
        {isAdmin && (
          <button type="button" class="primary" onClick={() => setOpen("create")}>
            New webhook
          </button>
        )}
      </div>
      {canSendEvents && isAdmin && <SendEvent projectId={projectId} />}
      <h2>Webhooks</h2>
      <ErrorMessage error={error} />
      {!isReady && !error && <Skeleton />}
      {isReady && webhooks.length === 0 && (
        <EmptyState title="No webhooks yet">
          A webhook sends this project's deployment events to your URL, signed and with retries.
        </EmptyState>
      )}
      {isReady && webhooks.length > 0 && (
        <table>
          <thead>
            <tr>
              <th scope="col">URL</th>
              <th scope="col">Events</th>
              <th scope="col">Status</th>
              <th scope="col">Created</th>
            </tr>
          </thead>
          <tbody>
            {webhooks.map((webhook) => (
              <tr key={webhook.id} class="linked">
                <td class="strong breaks">
                  <a href={webhookHref(projectId, webhook.id)}>{webhook.url}</a>
                </td>
                <td>
                  <Events names={webhook.events} />
                </td>
                <td>
                  <WebhookBadge webhook={webhook} />
                </td>
                <td data-label="created">
                  <Time at={webhook.created_at} />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      {open === "create" && (
        <CreateWebhookDialog
          projectId={projectId}
          onClose={close}
          onCreated={(created) => {
            revealedSecrets.set(created.id, created.secret);
            setOpen(created);
            reload();
          }}
        />
      )}
      {typeof open === "object" && (
        <SecretDialog title="The webhook's signing secret" label="Secret" secret={open.secret} onClose={close}>
          <p class="fine">
            The receiver uses it to verify deliveries.{" "}
            <a href={verifyHref(projectId, open.id)}>Show code with this secret</a>
          </p>
        </SecretDialog>
      )}
    </>
  );
}

interface CreateWebhookDialogProps {
  projectId: string;
  onClose(): void;
  onCreated(created: CreatedWebhook): void;
}

function CreateWebhookDialog({ projectId, onClose, onCreated }: CreateWebhookDialogProps) {
  const [url, setUrl] = useState("");
  const [events, setEvents] = useState<WebhookEventName[]>(["deploy.succeeded", "deploy.failed"]);
  const create = useAction(async (client) =>
    onCreated(await client.createWebhook(projectId, { url: url.trim(), events })),
  );
  const isReady = url.trim() !== "" && events.length > 0;
  return (
    <FormDialog title="New webhook" action={create} verb="Create webhook" isReady={isReady} onClose={onClose}>
      <Field
        label="URL"
        path="url"
        hint="It must return a 2xx status within 15 seconds."
        error={create.error}
        value={url}
        onInput={setUrl}
        maxLength={2048}
      />
      <EventCheckboxes chosen={events} onChange={setEvents} />
    </FormDialog>
  );
}

/** Sends a sample deployment event. Only in a local run. */
export function SendEvent({ projectId, onSent }: { projectId: string; onSent?: () => void }) {
  const { announce } = useSignedIn();
  const [name, setName] = useState<EventName>("deploy.succeeded");
  const send = useAction(async () => {
    await sendDeploymentEvent(projectId, name);
    announce(`${name} was added to the queue.`);
    onSent?.();
  });
  return (
    <>
      <div class="send-event">
        <label>
          <span>Simulate a deployment</span>
          <select value={name} onChange={(event) => setName(event.currentTarget.value as EventName)}>
            {eventNames.map((each) => (
              <option key={each} value={each}>
                {each}
              </option>
            ))}
          </select>
        </label>
        <ActionButton action={send}>Send deployment event</ActionButton>
      </div>
      <ErrorMessage error={send.error} />
    </>
  );
}
