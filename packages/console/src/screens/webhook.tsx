import { useEffect, useState } from "preact/hooks";
import { formatLabels } from "../../../../functions/webhooks/formats/format-of-url.ts";
import type { Client, Webhook } from "../../../client/src/client.ts";
import { filterLines, listsEvent } from "../../../client/src/event-filter.ts";
import { webhookEventNames } from "../../../client/src/values.ts";
import { deliveryFiltersOf } from "../data/address-filters.ts";
import {
  certificationHref,
  deliveryHref,
  healthHref,
  projectHref,
  type Query,
  verifyHref,
  type WebhookView,
  webhookHref,
  withQuery,
} from "../data/route.ts";
import { previousSecretExpiresAt, recordRotation, revealedSecrets } from "../data/session.ts";
import { cutMiddle, resentText, shortId } from "../data/short.ts";
import { useSignedIn } from "../data/signed-in.ts";
import {
  Countdown,
  causeOfDisabling,
  ErrorMessage,
  Events,
  Heading,
  Skeleton,
  Time,
  Url,
} from "../parts/components.tsx";
import { ConfirmDialog, FormDialog, OverlapDialog, SecretDialog, useDialog } from "../parts/dialog.tsx";
import { RadioGroup } from "../parts/fields.tsx";
import { DeliveryFilterBar } from "../parts/filter-bar.tsx";
import { FilterTrial } from "../parts/filter-field.tsx";
import { CertificationBadge, HealthBadge, HealthNote, noteOf } from "../parts/health.tsx";
import { lazy } from "../parts/lazy.tsx";
import { Menu } from "../parts/menu.tsx";
import { SendEventDialog } from "../parts/send-event.tsx";
import { Tabs } from "../parts/tabs.tsx";
import { type LeadTo, useAction } from "../parts/use-action.ts";
import { useLoaded } from "../parts/use-loaded.ts";
import { useNow } from "../parts/use-now.ts";
import { WebhookForm } from "../parts/webhook-form.tsx";
import { DeliveryList } from "./deliveries.tsx";
import { DeliveryDetail, sentTests } from "./delivery.tsx";
import { useProject } from "./projects.tsx";

const RecoverDialog = lazy(async () => (await import("../parts/recover.tsx")).RecoverDialog);
const HealthView = lazy(async () => (await import("./health-view.tsx")).HealthView);
const Certification = lazy(async () => (await import("./certification.tsx")).Certification);
const Verify = lazy(async () => (await import("./verify.tsx")).Verify);

const WEBHOOK_INTERVAL_MS = 5_000;

const tabOf = { deliveries: "Deliveries", health: "Health", certification: "Certification", verify: "Verify" } as const;

interface WebhookScreenProps {
  projectId: string;
  webhookId: string;
  view: WebhookView;
  query: Query;
  deliveryId?: string;
}

/** One webhook: its settings, its deliveries and the code that verifies them. */
export function WebhookScreen({ projectId, webhookId, view, query, deliveryId }: WebhookScreenProps) {
  const { project, isAdmin, isKnown } = useProject(projectId);
  const webhookRef = { projectId, webhookId };
  const loaded = useLoaded(webhookId, (client) => client.getWebhook(webhookRef), WEBHOOK_INTERVAL_MS);
  const { data: webhook, error, reload } = loaded;
  const dialogs = useDialog(reload);
  // A dialog of one view is none of the next.
  useEffect(dialogs.close, [view]);

  const crumbs = (
    <nav class="crumbs" aria-label="Breadcrumb">
      <a href={projectHref(projectId)}>{project?.name ?? "Project"}</a> <span aria-hidden="true">/</span>
    </nav>
  );
  // In the list of deliveries, what is wrong takes the place of the settings: the page begins with its content.
  const isQuiet = webhook?.enabled && webhook.suspended_at === undefined && webhook.mode !== "shadow";
  const hasFacts = view !== "deliveries" || (isQuiet && noteOf(webhook.health) === undefined);

  return (
    <>
      {webhook === undefined && error && (
        <div class="head">
          {crumbs}
          <Heading>Webhook</Heading>
        </div>
      )}
      <ErrorMessage error={error} />
      {(webhook === undefined || !isKnown) && !error && <Skeleton />}
      {webhook !== undefined && isKnown && (
        <>
          <div class="head">
            {crumbs}
            <Heading>
              <span title={webhook.url}>{webhook.name ?? cutMiddle(webhook.url, 60)}</span>
            </Heading>
            <HealthBadge webhook={webhook} />
            <CertificationBadge webhook={webhook} />
            {webhook.name !== undefined && <Url url={webhook.url} />}
            {isAdmin && <Actions webhook={webhook} {...dialogs} />}
          </div>
          {hasFacts && <Facts webhook={webhook} isFull={view !== "deliveries"} />}
          {webhook.suspended_at !== undefined && (
            <p class="note bad">
              The operator has suspended the project <Time at={webhook.suspended_at} />. Its deliveries are held until
              the suspension ends and an admin resends them.
            </p>
          )}
          {webhook.mode === "shadow" && (
            <p class="note neutral">Shadow mode: deliveries are signed and logged, and not sent.</p>
          )}
          {!webhook.enabled && (
            <p class={webhook.disabled_reason === "manual" ? "note neutral" : "note bad"}>
              Disabled {webhook.disabled_at && <Time at={webhook.disabled_at} />}{" "}
              {causeOfDisabling(webhook.disabled_reason)}. New events are held until an admin enables the webhook and
              resends them.
            </p>
          )}
          {/* The health view has the same facts. */}
          {view !== "health" && <HealthNote health={webhook.health} />}
          {isAdmin && <FirstSteps webhook={webhook} />}
          <Rotation webhookId={webhookId} />
          <Tabs
            label="Webhook"
            chosen={tabOf[view]}
            tabs={[
              { name: tabOf.deliveries, href: webhookHref(projectId, webhookId) },
              { name: tabOf.health, href: healthHref(projectId, webhookId) },
              { name: tabOf.certification, href: certificationHref(projectId, webhookId) },
              { name: tabOf.verify, href: verifyHref(projectId, webhookId) },
            ]}
          >
            {view === "deliveries" && (
              <DeliveryFilterBar href={webhookHref(projectId, webhookId)} filters={deliveryFiltersOf(query)} />
            )}
          </Tabs>
          {view === "verify" && <Verify secret={revealedSecrets.get(webhookId)} />}
          {view === "health" && <HealthView webhook={webhook} webhookRef={webhookRef} query={query} />}
          {view === "certification" && (
            <Certification
              webhookRef={webhookRef}
              isAdmin={isAdmin}
              certificationId={query.id ?? webhook.last_certification?.id}
            />
          )}
          {view === "deliveries" && (
            <div class={deliveryId ? "split open" : "split"}>
              <DeliveryList
                scope={webhookRef}
                query={query}
                isAdmin={isAdmin}
                openId={deliveryId}
                webhookName={webhook.name ?? cutMiddle(webhook.url)}
                next={{
                  children: webhook.filter
                    ? "Only events that match its filter are sent. The view Health shows what the filter decides about the last events."
                    : "Deliveries appear here when a deployment event occurs that the webhook subscribes to.",
                  ...(isAdmin && { command: `svc webhooks test ${shortId(webhookId)}` }),
                }}
              />
              {deliveryId && (
                <DeliveryDetail
                  key={deliveryId}
                  webhookRef={webhookRef}
                  url={webhook.url}
                  deliveryId={deliveryId}
                  isAdmin={isAdmin}
                  closeHref={withQuery(webhookHref(projectId, webhookId), { ...deliveryFiltersOf(query) })}
                />
              )}
            </div>
          )}
          {dialogs.dialog}
        </>
      )}
    </>
  );
}

/** What the webhook sends, and how. @param isFull whether the filter can be tried */
function Facts({ webhook, isFull }: { webhook: Webhook; isFull: boolean }) {
  const { project_id: projectId, events, filter, format, delivery, settle_seconds, header_names, created_at } = webhook;
  const { apiUrl } = useSignedIn();
  const hasPublicKey = webhook.signatures?.some((scheme) => scheme !== "hmac");
  return (
    <>
      <p class="facts">
        <Events names={events} max={isFull ? events.length : 4} />
        {filter && !isFull && <span class="fine one-line">only {filterLines(filter).join(", ")}</span>}
        {format && <span class="chip">{formatLabels[format]}</span>}
        {delivery && (
          <span class="chip">latest state{settle_seconds === undefined ? "" : `, after ${settle_seconds} s`}</span>
        )}
        {hasPublicKey && (
          <a class="fine" href={`${apiUrl}/.well-known/http-message-signatures-directory?project_id=${projectId}`}>
            public keys
          </a>
        )}
        {header_names && <span class="fine">headers {header_names.join(", ")}</span>}
        <span class="fine">
          created <Time at={created_at} />
        </span>
      </p>
      {filter && isFull && (
        <details>
          <summary>
            Only events with <code class="breaks">{filterLines(filter).join(", ")}</code>
          </summary>
          <FilterTrial projectId={projectId} webhook={{ events, filter }} />
        </details>
      )}
    </>
  );
}

interface ActionsProps extends Pick<ReturnType<typeof useDialog>, "show" | "close" | "done"> {
  webhook: Webhook;
}

/** One button for what the state calls for; the rest is in a menu. */
function Actions({ webhook, show, close, done }: ActionsProps) {
  const { announce, canSendEvents } = useSignedIn();
  const { id: webhookId, project_id: projectId } = webhook;
  const change = (changes: Parameters<Client["updateWebhook"]>[1], message: string) => async (client: Client) => {
    await client.updateWebhook(webhookRefOf(webhook), changes);
    done(message);
  };
  const enable = useAction(change({ enabled: true }, "Webhook enabled."));
  const goLive = useAction(change({ mode: "live" }, "Webhook switched to live."));
  const sendTest = () =>
    show(
      <SendTestDialog
        webhook={webhook}
        onClose={close}
        onSent={(id, leadTo) => {
          sentTests.add(id);
          done("Sending a test…");
          leadTo(deliveryHref(projectId, webhookId, id));
        }}
      />,
    );
  const disable = () =>
    show(
      <ConfirmDialog
        title="Disable this webhook?"
        verb="Disable webhook"
        act={change({ enabled: false }, "Webhook disabled.")}
        onClose={close}
      >
        <p class="breaks">
          <code>{webhook.url}</code> receives nothing until an admin enables the webhook again.
        </p>
        <p>
          No delivery is lost: pending deliveries and those of new events are held. After you enable the webhook, send
          them with “Resend…”.
        </p>
      </ConfirmDialog>,
    );
  const edit = () =>
    show(
      <WebhookForm
        title="Edit webhook"
        verb="Save"
        projectId={projectId}
        initial={webhook}
        save={async (client, { url, name, events, filter, isFilterChanged, delivery }) => {
          // The service treats a URL in the request as a new receiver, so send it only if it changed.
          const changed = url === webhook.url ? {} : { url };
          const renamed = name === (webhook.name ?? "") ? {} : { name: name || null };
          const filtered = isFilterChanged ? { filter } : {};
          await change({ ...changed, ...renamed, ...filtered, ...delivery, events }, "Webhook updated.")(client);
        }}
        onClose={close}
      />,
    );
  const rotate = () =>
    show(
      <OverlapDialog
        title="Rotate the signing secret"
        verb="Rotate"
        replaced="secret"
        replace={async (client, overlap_seconds) => {
          const { secret } = await client.rotateWebhookSecret(webhookRefOf(webhook), { overlap_seconds });
          recordRotation(webhookId, Date.now() + overlap_seconds * 1000);
          revealedSecrets.set(webhookId, secret);
          show(
            <SecretDialog title="The new signing secret" label="Secret" secret={secret} onClose={close}>
              <p class="fine">
                Add it to the receiver now.{" "}
                <a href={verifyHref(projectId, webhookId)} onClick={close}>
                  Show code with this secret
                </a>
              </p>
            </SecretDialog>,
          );
        }}
        onClose={close}
      >
        <p>
          Creates a new secret and shows it once. During the overlap, deliveries are signed with both secrets. Only this
          tab shows when the overlap ends, so write the time down.
        </p>
      </OverlapDialog>,
    );
  const remove = () =>
    show(
      <ConfirmDialog
        title="Delete this webhook?"
        verb="Delete webhook"
        act={async (client, leadTo) => {
          await client.deleteWebhook(webhookRefOf(webhook));
          announce("Webhook deleted.");
          leadTo(projectHref(projectId));
        }}
        onClose={close}
      >
        <p class="breaks">
          {webhook.name && `“${webhook.name}”, `}
          <code>{webhook.url}</code> will receive no more events. Pending deliveries are cancelled, and the secret and
          the delivery log are deleted. This cannot be undone.
        </p>
      </ConfirmDialog>,
    );
  const resend = (status?: "pending") =>
    show(
      <RecoverDialog
        webhookRef={webhookRefOf(webhook)}
        initialStatus={status}
        onClose={close}
        onDone={(count) => done(resentText(count))}
      />,
    );
  const simulate = () => show(<SendEventDialog projectId={projectId} onClose={close} onDone={done} />);
  const isFailing = noteOf(webhook.health)?.tone === "bad";
  const choices: [isFitting: boolean, verb: string, run: () => void][] = [
    [!webhook.enabled, "Enable", enable.run],
    [webhook.mode === "shadow", "Go live", goLive.run],
    [isFailing, "Send what waits", () => resend("pending")],
  ];
  const [, main, run] = choices.find(([isFitting]) => isFitting) ?? [true, "Send test", sendTest];
  const isUrgent = main !== "Send test" || webhook.health.state === "new";
  const others: [verb: string, run: () => void, isOffered?: boolean][] = [
    ["Send test", sendTest, main !== "Send test"],
    ["Simulate a deployment", simulate, canSendEvents],
    ["Resend…", () => resend(), webhook.enabled && webhook.suspended_at === undefined],
    ["Edit", edit],
    ["Rotate secret", rotate],
    ["Disable", disable, webhook.enabled],
  ];
  return (
    <div class="actions">
      <button
        type="button"
        class={isUrgent ? "primary" : "plain"}
        aria-disabled={enable.isBusy || goLive.isBusy}
        onClick={run}
      >
        {main}
      </button>
      <Menu label="More">
        {others.map(
          ([verb, run, isOffered = true]) =>
            isOffered && (
              <button key={verb} type="button" onClick={run}>
                {verb}
              </button>
            ),
        )}
        <button type="button" class="bad" onClick={remove}>
          Delete
        </button>
      </Menu>
      <ErrorMessage error={enable.error ?? goLive.error} />
    </div>
  );
}

/** Leads from a new webhook to its first delivery. Shown until it was called, and for the rest of the session that created it. */
function FirstSteps({ webhook }: { webhook: Webhook }) {
  const { id, project_id, enabled, health, mode, last_certification } = webhook;
  const isNew = revealedSecrets.has(id) || (health.last_success_at === null && health.last_error === null);
  if (!isNew || !enabled) return null;
  return (
    <ol class="first-steps" aria-label="From new to live">
      {mode !== "shadow" && (
        <li class={health.last_success_at === null ? undefined : "done"}>
          <strong>Send test</strong>: does the receiver accept a delivery?
        </li>
      )}
      <li class={last_certification?.passed ? "done" : undefined}>
        <a href={certificationHref(project_id, id)}>Certify</a>: does it reject what is forged?
      </li>
      <li>
        <strong>{mode === "shadow" ? "Go live" : "Live"}</strong>: the events of deployments arrive by themselves.
      </li>
    </ol>
  );
}

/** Shown while deliveries are signed with the previous secret too. */
function Rotation({ webhookId }: { webhookId: string }) {
  const now = useNow(1000);
  const expiresAt = previousSecretExpiresAt(webhookId);
  if (expiresAt === undefined || expiresAt <= now) return null;
  return (
    <p class="note warning">
      Deliveries are signed with both the previous and the new secret. The previous one expires in{" "}
      <Countdown endsAt={expiresAt} />.
    </p>
  );
}

const webhookRefOf = ({ project_id, id }: Webhook) => ({ projectId: project_id, webhookId: id });

interface SendTestDialogProps {
  webhook: Webhook;
  onClose(): void;
  onSent(deliveryId: string, leadTo: LeadTo): void;
}

function SendTestDialog({ webhook, onClose, onSent }: SendTestDialogProps) {
  const names = webhookEventNames.filter((each) => listsEvent(webhook.events, each));
  const own = webhook.events.filter((each) => !each.endsWith("*") && !names.some((known) => known === each));
  const values = [...names, ...own];
  const [name, setName] = useState<string>(values[0] ?? "deploy.succeeded");
  const send = useAction(async (client, leadTo) =>
    onSent((await client.sendTestDelivery(webhookRefOf(webhook), { event: name })).id, leadTo),
  );
  return (
    <FormDialog title="Send a test delivery" action={send} verb="Send test" onClose={onClose}>
      <p>
        Sends a signed sample of an event of this webhook now, marked as a test, without retries. It is also sent if the
        webhook is disabled.
      </p>
      <RadioGroup legend="Event" values={values} chosen={name} onChange={setName} />
    </FormDialog>
  );
}
