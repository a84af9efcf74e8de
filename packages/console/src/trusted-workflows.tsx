import { useState } from "preact/hooks";
import type { TrustedWorkflow, WorkflowPermission } from "../../client/src/client.ts";
import { workflowPermissions } from "../../client/src/values.ts";
import { Checkboxes } from "./choices.tsx";
import { EmptyState, ErrorMessage, Field, RowButton, Skeleton, Time } from "./components.tsx";
import { FormDialog } from "./dialog.tsx";
import { workflowPermissionMeanings } from "./permissions.ts";
import { useSignedIn } from "./signed-in.ts";
import { useAction } from "./use-action.ts";
import { useLoaded } from "./use-loaded.ts";

const WORKFLOWS_INTERVAL_MS = 15_000;

/** The CI workflows that a project trusts. */
export function TrustedWorkflows({ projectId }: { projectId: string }) {
  const { announce } = useSignedIn();
  const {
    data: workflows,
    error,
    reload,
  } = useLoaded(
    `workflows ${projectId}`,
    (client) => client.listTrustedWorkflows(projectId),
    () => WORKFLOWS_INTERVAL_MS,
  );
  const [open, setOpen] = useState<"create" | TrustedWorkflow>();
  const close = () => setOpen(undefined);
  const done = (message: string) => {
    announce(message);
    close();
    reload();
  };
  return (
    <section class="list" aria-label="Trusted workflows">
      <div class="head">
        <h2>Trusted workflows</h2>
        <button type="button" class="plain small" onClick={() => setOpen("create")}>
          Trust a workflow
        </button>
      </div>
      <p class="lead">
        CI jobs of a repository that act in this project with their own OIDC token, so that no key is stored.
      </p>
      <ErrorMessage error={error} />
      {workflows === undefined && !error && <Skeleton rows={2} />}
      {workflows?.length === 0 && <EmptyState title="No trusted workflows yet" />}
      {workflows !== undefined && workflows.length > 0 && (
        <table>
          <thead>
            <tr>
              <th scope="col">Repository</th>
              <th scope="col">Only</th>
              <th scope="col">May do</th>
              <th scope="col">Created</th>
              <th scope="col">
                <span class="visually-hidden">Actions</span>
              </th>
            </tr>
          </thead>
          <tbody>
            {workflows.map((workflow) => (
              <tr key={workflow.id}>
                <td class="strong breaks name">
                  {nameOf(workflow)}
                  {workflow.name !== null && (
                    <p class="fine">
                      {workflow.issuer} {workflow.repository_id}
                    </p>
                  )}
                </td>
                <td class="wraps">{conditionsOf(workflow)}</td>
                <td class="wraps">{workflow.permissions.join(", ")}</td>
                <td data-label="created">
                  <Time at={workflow.created_at} />
                </td>
                <td class="end">
                  <RowButton verb="Delete" name={nameOf(workflow)} onClick={() => setOpen(workflow)} />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      {open === "create" && (
        <TrustDialog projectId={projectId} onClose={close} onDone={() => done("Workflow trusted.")} />
      )}
      {typeof open === "object" && (
        <EndTrustDialog workflow={open} onClose={close} onDone={() => done("The trust has ended.")} />
      )}
    </section>
  );
}

const nameOf = ({ name, issuer, repository_id }: TrustedWorkflow) => name ?? `${issuer} ${repository_id}`;

/** `refs/heads/main, environment production`; `any ref` without a condition. */
function conditionsOf(trust: TrustedWorkflow): string {
  const { ref, environment, job_workflow_ref: file, event_name: event, repository_owner_id: owner } = trust;
  const conditions = [
    ref,
    environment && `environment ${environment}`,
    file && `file ${file}`,
    event && `event ${event}`,
    owner && `owner ${owner}`,
  ];
  return conditions.filter(Boolean).join(", ") || "any ref";
}

interface TrustDialogProps {
  projectId: string;
  onClose(): void;
  onDone(): void;
}

/** The initial values of the form. The names are those of the API. */
const emptyTrust = {
  issuer: "github",
  repository_id: "",
  name: "",
  ref: "refs/heads/main",
  environment: "",
  job_workflow_ref: "",
  event_name: "",
  repository_owner_id: "",
};
type TrustField = keyof typeof emptyTrust;

function TrustDialog({ projectId, onClose, onDone }: TrustDialogProps) {
  const [fields, setFields] = useState(emptyTrust);
  const [permissions, setPermissions] = useState<WorkflowPermission[]>(["webhooks:read", "deliveries:read"]);
  const trust = useAction(async (client) => {
    const { issuer, repository_id, ...optional } = fields;
    const set = Object.entries(optional).filter(([, value]) => value.trim() !== "");
    await client.createTrustedWorkflow(projectId, {
      issuer: issuer.trim(),
      repository_id: repository_id.trim(),
      permissions,
      ...Object.fromEntries(set.map(([name, value]) => [name, value.trim()])),
    });
    onDone();
  });
  const inputOf = (path: TrustField) => ({
    path,
    error: trust.error,
    value: fields[path],
    onInput: (value: string) => setFields((last) => ({ ...last, [path]: value })),
  });
  const isReady = fields.issuer.trim() !== "" && fields.repository_id.trim() !== "" && permissions.length > 0;
  return (
    <FormDialog title="Trust a workflow" action={trust} verb="Trust" isReady={isReady} onClose={onClose}>
      <Field label="CI system" hint="github, gitlab, or another one that the service accepts." {...inputOf("issuer")} />
      <Field
        label="Repository id"
        hint="The numeric id, because a name can be taken over. GitHub: gh api repos/<owner>/<repository> --jq .id"
        {...inputOf("repository_id")}
      />
      <Field label="Ref" hint="Empty = any ref, also pull requests." isOptional {...inputOf("ref")} />
      <Field label="Environment" hint="Only jobs with this environment." isOptional {...inputOf("environment")} />
      <Field
        label="Workflow file"
        hint="With its ref: acme/shop/.github/workflows/deploy.yml@refs/heads/main"
        isOptional
        {...inputOf("job_workflow_ref")}
      />
      <Field
        label="Event"
        hint="What started the workflow, such as push. Empty = anything."
        isOptional
        {...inputOf("event_name")}
      />
      <Field label="Owner id" hint="Only while it has this owner." isOptional {...inputOf("repository_owner_id")} />
      <Field label="Name" hint="What the trust is for." isOptional maxLength={100} {...inputOf("name")} />
      <Checkboxes
        legend="The workflow may"
        values={workflowPermissions}
        chosen={permissions}
        onChange={setPermissions}
        labelOf={(value) => value}
        meaningOf={(value) => workflowPermissionMeanings[value]}
      />
    </FormDialog>
  );
}

interface EndTrustDialogProps {
  workflow: TrustedWorkflow;
  onClose(): void;
  onDone(): void;
}

function EndTrustDialog({ workflow, onClose, onDone }: EndTrustDialogProps) {
  const remove = useAction(async (client) => {
    await client.deleteTrustedWorkflow(workflow.project_id, workflow.id);
    onDone();
  });
  const title = `End the trust in “${nameOf(workflow)}”?`;
  return (
    <FormDialog title={title} action={remove} verb="End the trust" look="danger" onClose={onClose}>
      <p>The next request of the workflow is rejected.</p>
    </FormDialog>
  );
}
