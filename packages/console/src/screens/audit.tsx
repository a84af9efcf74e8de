import { useState } from "preact/hooks";
import type { AuditEvent } from "../../../client/src/client.ts";
import { actorOf, namesIn, sentenceOf } from "../data/audit-sentences.ts";
import { Select } from "../parts/choices.tsx";
import { ActionButton, EmptyState, ErrorMessage, Heading, LoadMore, Skeleton, Time } from "../parts/components.tsx";
import { useAction } from "../parts/use-action.ts";
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
  const [text, setText] = useState("");
  const [kind, setKind] = useState("all");
  const kindOf = ({ action }: AuditEvent) => action.split(".")[0]?.replaceAll("_", " ") ?? "";
  const kinds = Object.fromEntries(["all", ...shown.map(kindOf)].map((each) => [each, each]));
  const isFound = (entry: AuditEvent) =>
    (kind === "all" || kindOf(entry) === kind) &&
    `${actorOf(entry.actor)} ${sentenceOf(entry, names)} ${Object.values(entry.actor).join(" ")}`
      .toLowerCase()
      .includes(text.trim().toLowerCase());
  const found = shown.filter(isFound);
  const [file, setFile] = useState<string>();
  const collect = useAction(async (client) => {
    const lines: string[] = [];
    const entries = projectId === undefined ? client.eachAuditEvent() : client.eachProjectAuditEvent(projectId);
    for await (const entry of entries) if (isFound(entry)) lines.push(`${JSON.stringify(entry)}\n`);
    setFile(URL.createObjectURL(new Blob(lines, { type: "application/x-ndjson" })));
  });
  return (
    <>
      {shown.length > 0 && (
        <search class="search-row">
          <input
            type="search"
            aria-label="Search the entries shown"
            placeholder="Search the entries shown"
            value={text}
            onInput={({ currentTarget }) => setText(currentTarget.value)}
          />
          <Select label="About" labels={kinds} chosen={kind} onChange={setKind} />
          <ActionButton action={collect}>Export all that match</ActionButton>
          {file && (
            <a href={file} download="audit.ndjson">
              Save audit.ndjson
            </a>
          )}
        </search>
      )}
      <ErrorMessage error={error ?? collect.error} />
      {!isLoaded && !error && <Skeleton rows={6} />}
      {isLoaded && found.length === 0 && (
        <EmptyState title={shown.length === 0 ? "Nothing was done yet" : "None of the entries shown matches"} />
      )}
      {found.length > 0 && (
        <ol class="audit">
          {found.map((entry) => (
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
