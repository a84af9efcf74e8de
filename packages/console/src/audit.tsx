import { useState } from "preact/hooks";
import type { AuditEvent, AuditPage, Client } from "../../client/src/client.ts";
import { actorOf, namesIn, sentenceOf } from "./audit-sentences.ts";
import { ActionButton, EmptyState, ErrorMessage, Heading, Skeleton, Time } from "./components.tsx";
import { mergePages } from "./delivery-pages.ts";
import { AdminPage } from "./projects.tsx";
import { useAction } from "./use-action.ts";
import { useLoaded } from "./use-loaded.ts";

const PAGE_SIZE = 30;
const AUDIT_INTERVAL_MS = 15_000;

/** The audit log, newest first. @param projectId absent = to the user's API keys; set = in the project, for its admins */
export function Audit({ projectId }: { projectId?: string }) {
  if (projectId !== undefined) {
    return (
      <AdminPage projectId={projectId} chosen="Audit">
        <p class="lead">
          What was done to webhooks, members, service accounts and trusted workflows in the last 400 days.
        </p>
        <AuditList projectId={projectId} />
      </AdminPage>
    );
  }
  return (
    <>
      <div class="head">
        <Heading>Audit</Heading>
      </div>
      <p class="lead">What was done to your API keys in the last 400 days. Each project has an audit of its own.</p>
      <AuditList projectId={undefined} />
    </>
  );
}

/** Returns one page of the log of a project, or of the caller's keys. @param cursor undefined = the newest */
function pageOf(client: Client, projectId: string | undefined, cursor?: string): Promise<AuditPage> {
  const query = { limit: PAGE_SIZE, ...(cursor !== undefined && { cursor }) };
  return projectId === undefined ? client.listAuditEvents(query) : client.listProjectAuditEvents(projectId, query);
}

function AuditList({ projectId }: { projectId: string | undefined }) {
  /** Everything shown when "Load more" was last used. */
  const [older, setOlder] = useState<AuditPage>();
  const { data: live, error } = useLoaded(
    `audit ${projectId}`,
    (client) => pageOf(client, projectId),
    () => AUDIT_INTERVAL_MS,
  );
  const shown = live ? mergePages(live, older?.items ?? []) : [];
  const nextCursor = live?.nextCursor && older ? older.nextCursor : live?.nextCursor;
  const loadMore = useAction(async (client) => {
    if (nextCursor === undefined) return;
    const page = await pageOf(client, projectId, nextCursor);
    setOlder({ ...page, items: [...shown, ...page.items] });
  });
  const names = namesIn(shown);
  return (
    <>
      <ErrorMessage error={error} />
      {live === undefined && !error && <Skeleton rows={6} />}
      {live !== undefined && shown.length === 0 && <EmptyState title="Nothing was done yet" />}
      {shown.length > 0 && (
        <ol class="audit">
          {shown.map((entry) => (
            <AuditItem key={entry.id} entry={entry} names={names} />
          ))}
        </ol>
      )}
      {nextCursor !== undefined && (
        <div class="more">
          <ActionButton action={loadMore}>Load more</ActionButton>
          <ErrorMessage error={loadMore.error} />
        </div>
      )}
    </>
  );
}

function AuditItem({ entry, names }: { entry: AuditEvent; names: Map<string, string> }) {
  const { actor, at } = entry;
  const { address, user_agent, request_id, run_id } = actor;
  return (
    <li>
      <p>
        <strong>{actorOf(actor)}</strong> {sentenceOf(entry, names)}
      </p>
      <p class="fine origin">
        <Time at={at} />
        {address && <span>from {address}</span>}
        {user_agent && <span class="agent">{user_agent}</span>}
        {run_id && <span>run {run_id}</span>}
        {request_id && (
          <span class="request">
            request <code>{request_id}</code>
          </span>
        )}
      </p>
    </li>
  );
}
