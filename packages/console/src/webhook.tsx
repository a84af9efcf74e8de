import { useState } from "preact/hooks";
import { DeliveryList } from "./deliveries.tsx";
import { DeliveryDetail } from "./delivery.tsx";
import { FormDialog, SecretDialog } from "./dialog.tsx";
import {
  ActionButton,
  Choices,
  Countdown,
  EventChecks,
  Events,
  Failure,
  Field,
  Heading,
  Time,
  Waiting,
  WebhookBadge,
  whyDisabled,
} from "./parts.tsx";
import { useProject } from "./projects.tsx";
import { eventNames, type Webhook, type WebhookWithSecret } from "./records.ts";
import { deliveryHref, projectHref, verifyHref, webhookHref } from "./route.ts";
import { noteRotation, rotationEnd, shownSecrets } from "./session.ts";
import { useAction, useLoaded, useNow, useSignedIn } from "./signed-in.ts";
import { Verify } from "./verify.tsx";

interface WebhookScreenProps {
  projectId: string;
  webhookId: string;
  view: "deliveries" | "verify";
  deliveryId?: string;
}

type Open = "edit" | "rotate" | "test" | "delete" | WebhookWithSecret;

/** One webhook: what it is told, what became of that, and how its receiver verifies. */
export function WebhookScreen({ projectId, webhookId, view, deliveryId }: WebhookScreenProps) {
  const { api, say } = useSignedIn();
  const { project, isAdmin, isKnown } = useProject(projectId);
  const path = { projectId, webhookId };
  const {
    data: webhook,
    failure,
    reload,
  } = useLoaded(
    webhookId,
    (signal) => api.webhook(path, signal),
    () => 5_000,
  );
  const [open, setOpen] = useState<Open>();
  const close = () => setOpen(undefined);
  const done = (message: string) => {
    close();
    say(message);
    reload();
  };

  return (
    <>
      <nav class="crumbs" aria-label="Breadcrumb">
        <a href="#/projects">Projects</a>
        <span aria-hidden="true">/</span>
        <a href={projectHref(projectId)}>{project?.name ?? "Project"}</a>
      </nav>
      <Failure error={failure} />
      {(webhook === undefined || !isKnown) && !failure && <Waiting />}
      {webhook !== undefined && isKnown && (
        <>
          <div class="head">
            <Heading>
              <span class="url">{webhook.url}</span>
            </Heading>
            {isAdmin && <Actions webhook={webhook} onOpen={setOpen} onDone={done} />}
          </div>
          <p class="facts">
            <WebhookBadge webhook={webhook} />
            <Events names={webhook.events} />
            <span class="fine">
              created <Time at={webhook.created_at} />
            </span>
          </p>
          {!webhook.enabled && (
            <p class="note bad">
              {whyDisabled(webhook)}{" "}
              {webhook.disabled_at && (
                <>
                  Disabled <Time at={webhook.disabled_at} />.{" "}
                </>
              )}
              Its events are held until it is enabled and recovered.
            </p>
          )}
          <Rotation webhookId={webhookId} />
          <nav class="tabs" aria-label="Webhook">
            <a href={webhookHref(projectId, webhookId)} aria-current={view === "deliveries" ? "page" : undefined}>
              Deliveries
            </a>
            <a href={verifyHref(projectId, webhookId)} aria-current={view === "verify" ? "page" : undefined}>
              Verify
            </a>
          </nav>
          {view === "verify" && <Verify secret={shownSecrets.get(webhookId)} />}
          {view === "deliveries" && (
            <div class={deliveryId ? "split open" : "split"}>
              <DeliveryList path={path} isAdmin={isAdmin} isEnabled={webhook.enabled} openId={deliveryId} />
              {deliveryId && (
                <DeliveryDetail
                  key={deliveryId}
                  path={path}
                  deliveryId={deliveryId}
                  isAdmin={isAdmin}
                  closeHref={webhookHref(projectId, webhookId)}
                />
              )}
            </div>
          )}
          {open === "edit" && <Edit webhook={webhook} onClose={close} onDone={() => done("The webhook is changed.")} />}
          {open === "rotate" && (
            <Rotate
              webhook={webhook}
              onClose={close}
              onRotated={(rotated) => {
                shownSecrets.set(webhookId, rotated.secret);
                setOpen(rotated);
              }}
            />
          )}
          {open === "test" && (
            <SendTest
              webhook={webhook}
              onClose={close}
              onSent={(id) => {
                done("The test is on its way.");
                location.hash = deliveryHref(projectId, webhookId, id);
              }}
            />
          )}
          {open === "delete" && (
            <Delete
              webhook={webhook}
              onClose={close}
              onDone={() => {
                say("The webhook is deleted.");
                location.hash = projectHref(projectId);
              }}
            />
          )}
          {typeof open === "object" && (
            <SecretDialog title="The new signing secret" label="Secret" secret={open.secret} onClose={close}>
              <p class="fine">
                Give it to the receiver now.{" "}
                <a href={verifyHref(projectId, webhookId)} onClick={close}>
                  Code that verifies, filled in
                </a>
              </p>
            </SecretDialog>
          )}
        </>
      )}
    </>
  );
}

interface ActionsProps {
  webhook: Webhook;
  onOpen(what: Open): void;
  onDone(message: string): void;
}

function Actions({ webhook, onOpen, onDone }: ActionsProps) {
  const { api } = useSignedIn();
  const toggle = useAction(async () => {
    const enabled = !webhook.enabled;
    await api.updateWebhook({ projectId: webhook.project_id, webhookId: webhook.id }, { enabled });
    onDone(enabled ? "The webhook is enabled." : "The webhook is disabled.");
  });
  return (
    <div class="actions">
      <button type="button" class="plain" onClick={() => onOpen("test")}>
        Send test
      </button>
      <ActionButton action={toggle} look={webhook.enabled ? "plain" : "primary"}>
        {webhook.enabled ? "Disable" : "Enable"}
      </ActionButton>
      <button type="button" class="plain" onClick={() => onOpen("edit")}>
        Edit
      </button>
      <button type="button" class="plain" onClick={() => onOpen("rotate")}>
        Rotate secret
      </button>
      <button type="button" class="danger" onClick={() => onOpen("delete")}>
        Delete
      </button>
      <Failure error={toggle.failure} />
    </div>
  );
}

/** While the old secret signs beside the new one. */
function Rotation({ webhookId }: { webhookId: string }) {
  const now = useNow(1000);
  const endsAt = rotationEnd(webhookId);
  if (endsAt === undefined || endsAt <= now) return null;
  return (
    <p class="note wait">
      Deliveries are signed with the new secret and the old one. The old one ends in <Countdown endsAt={endsAt} />.
    </p>
  );
}

interface DialogProps {
  webhook: Webhook;
  onClose(): void;
  onDone(): void;
}

const pathOf = ({ project_id, id }: Webhook) => ({ projectId: project_id, webhookId: id });

function Edit({ webhook, onClose, onDone }: DialogProps) {
  const { api } = useSignedIn();
  const [url, setUrl] = useState(webhook.url);
  const [events, setEvents] = useState(webhook.events);
  const save = useAction(async () => {
    // Another URL is another receiver to the service: it is sent only when it is one.
    const changed = url.trim() === webhook.url ? {} : { url: url.trim() };
    await api.updateWebhook(pathOf(webhook), { ...changed, events });
    onDone();
  });
  const isReady = url.trim() !== "" && events.length > 0;
  return (
    <FormDialog title="Edit webhook" action={save} verb="Save" isReady={isReady} onClose={onClose}>
      <Field label="URL" path="url" failure={save.failure} value={url} onInput={setUrl} maxLength={2048} />
      <EventChecks chosen={events} onChoose={setEvents} />
    </FormDialog>
  );
}

const overlaps = {
  "0": "None: the old secret ends at once",
  "3600": "1 hour",
  "86400": "1 day",
  "604800": "7 days",
};
type Overlap = keyof typeof overlaps;

function Rotate({
  webhook,
  onClose,
  onRotated,
}: Omit<DialogProps, "onDone"> & { onRotated(to: WebhookWithSecret): void }) {
  const { api } = useSignedIn();
  const [overlap, setOverlap] = useState<Overlap>("86400");
  const rotate = useAction(async () => {
    const rotated = await api.rotateSecret(pathOf(webhook), Number(overlap));
    noteRotation(webhook.id, Date.now() + Number(overlap) * 1000);
    onRotated(rotated);
  });
  return (
    <FormDialog title="Rotate the signing secret" action={rotate} verb="Rotate" onClose={onClose}>
      <p>
        A new secret is made and shown once. During the overlap, deliveries carry signatures by both. When it ends, only
        this tab will know: note it.
      </p>
      <Choices
        legend="Overlap"
        values={Object.keys(overlaps) as Overlap[]}
        chosen={overlap}
        onChoose={setOverlap}
        labelOf={(value) => overlaps[value]}
      />
    </FormDialog>
  );
}

function SendTest({ webhook, onClose, onSent }: Omit<DialogProps, "onDone"> & { onSent(deliveryId: string): void }) {
  const { api } = useSignedIn();
  const [name, setName] = useState(webhook.events[0] ?? "deploy.succeeded");
  const send = useAction(async () => onSent((await api.sendTest(pathOf(webhook), name)).id));
  return (
    <FormDialog title="Send a test" action={send} verb="Send test" onClose={onClose}>
      <p>A sample event, signed like any other, attempted once and now. It is sent to a disabled webhook too.</p>
      <Choices legend="Event" values={eventNames} chosen={name} onChoose={setName} />
    </FormDialog>
  );
}

function Delete({ webhook, onClose, onDone }: DialogProps) {
  const { api } = useSignedIn();
  const remove = useAction(async () => {
    await api.deleteWebhook(pathOf(webhook));
    onDone();
  });
  return (
    <FormDialog title="Delete this webhook?" action={remove} verb="Delete webhook" look="danger" onClose={onClose}>
      <p class="breaks">
        <code>{webhook.url}</code> is told nothing any more. Its pending deliveries are cancelled, its secret and its
        log are gone. This cannot be undone.
      </p>
    </FormDialog>
  );
}
