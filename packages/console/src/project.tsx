import { useState } from "preact/hooks";
import { sendDeploymentEvent } from "./api.ts";
import { FormDialog, SecretDialog } from "./dialog.tsx";
import {
  ActionButton,
  Badge,
  Empty,
  EventChecks,
  Events,
  Failure,
  Field,
  Heading,
  Time,
  Waiting,
  WebhookBadge,
} from "./parts.tsx";
import { useProject } from "./projects.tsx";
import { type EventName, eventNames, type WebhookWithSecret } from "./records.ts";
import { verifyHref, webhookHref } from "./route.ts";
import { shownSecrets } from "./session.ts";
import { useAction, useLoaded, useSignedIn } from "./signed-in.ts";

/** A project's webhooks. */
export function ProjectScreen({ projectId }: { projectId: string }) {
  const { api, sendsEvents } = useSignedIn();
  const { project, isAdmin, isKnown } = useProject(projectId);
  const {
    data: webhooks,
    failure,
    reload,
  } = useLoaded(
    projectId,
    (signal) => api.webhooks(projectId, signal),
    () => 10_000,
  );
  const [open, setOpen] = useState<"create" | WebhookWithSecret>();
  const close = () => setOpen(undefined);
  const isReady = webhooks !== undefined && isKnown;

  return (
    <>
      <nav class="crumbs" aria-label="Breadcrumb">
        <a href="#/projects">Projects</a>
      </nav>
      <div class="head">
        <Heading>{project?.name ?? "Project"}</Heading>
        {project && !isAdmin && <Badge tone="calm">viewer: you may look, not change</Badge>}
        {isAdmin && (
          <button type="button" class="primary" onClick={() => setOpen("create")}>
            New webhook
          </button>
        )}
      </div>
      {sendsEvents && isAdmin && <SendEvent projectId={projectId} />}
      <h2>Webhooks</h2>
      <Failure error={failure} />
      {!isReady && !failure && <Waiting />}
      {isReady && webhooks.length === 0 && (
        <Empty title="No webhooks yet">
          A webhook tells a URL of yours about this project's deployments: signed, retried, never lost.
        </Empty>
      )}
      {isReady && webhooks.length > 0 && (
        <table>
          <thead>
            <tr>
              <th scope="col">URL</th>
              <th scope="col">Events</th>
              <th scope="col">State</th>
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
        <CreateWebhook
          projectId={projectId}
          onClose={close}
          onCreated={(created) => {
            shownSecrets.set(created.id, created.secret);
            setOpen(created);
            reload();
          }}
        />
      )}
      {typeof open === "object" && (
        <SecretDialog title="The webhook's signing secret" label="Secret" secret={open.secret} onClose={close}>
          <p class="fine">
            The receiver verifies deliveries with it.{" "}
            <a href={verifyHref(projectId, open.id)}>Code that does, filled in</a>
          </p>
        </SecretDialog>
      )}
    </>
  );
}

interface CreateProps {
  projectId: string;
  onClose(): void;
  onCreated(created: WebhookWithSecret): void;
}

function CreateWebhook({ projectId, onClose, onCreated }: CreateProps) {
  const { api } = useSignedIn();
  const [url, setUrl] = useState("");
  const [events, setEvents] = useState<EventName[]>(["deploy.succeeded", "deploy.failed"]);
  const create = useAction(async () => onCreated(await api.createWebhook(projectId, { url: url.trim(), events })));
  const isReady = url.trim() !== "" && events.length > 0;
  return (
    <FormDialog title="New webhook" action={create} verb="Create webhook" isReady={isReady} onClose={onClose}>
      <Field
        label="URL"
        path="url"
        hint="Answers 2xx within 15 seconds."
        failure={create.failure}
        value={url}
        onInput={setUrl}
        maxLength={2048}
      />
      <EventChecks chosen={events} onChoose={setEvents} />
    </FormDialog>
  );
}

/** Plays the deployment pipeline, in a local run. */
export function SendEvent({ projectId, onSent }: { projectId: string; onSent?: () => void }) {
  const { say } = useSignedIn();
  const [name, setName] = useState<EventName>("deploy.succeeded");
  const send = useAction(async () => {
    await sendDeploymentEvent(projectId, name);
    say(`${name} is on the queue.`);
    onSent?.();
  });
  return (
    <>
      <div class="send-event">
        <label>
          <span>Play the pipeline</span>
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
      <Failure error={send.failure} />
    </>
  );
}
