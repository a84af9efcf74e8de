import type { AuditEvent } from "../../../client/src/client.ts";
import { actorOf, namesIn, sentenceOf } from "../data/audit-sentences.ts";
import { EmptyState, ErrorMessage, Heading, LoadMore, Skeleton, Time } from "../parts/components.tsx";
import { usePages } from "../parts/use-pages.ts";
import { AdminPage } from "./projects.tsx";

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

function AuditList({ projectId }: { projectId: string | undefined }) {
  const { shown, isLoaded, error, loadMore } = usePages(`audit ${projectId}`, {
    load: (client, page) =>
      projectId === undefined ? client.listAuditEvents(page) : client.listProjectAuditEvents(projectId, page),
    intervalMs: () => AUDIT_INTERVAL_MS,
    pageSize: PAGE_SIZE,
    maxLiveCount: PAGE_SIZE,
  });
  const names = namesIn(shown);
  return (
    <>
      <ErrorMessage error={error} />
      {!isLoaded && !error && <Skeleton rows={6} />}
      {isLoaded && shown.length === 0 && <EmptyState title="Nothing was done yet" />}
      {shown.length > 0 && (
        <ol class="audit">
          {shown.map((entry) => (
            <AuditItem key={entry.id} entry={entry} names={names} />
          ))}
        </ol>
      )}
      {loadMore && <LoadMore action={loadMore} />}
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
