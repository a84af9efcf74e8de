import { useState } from "preact/hooks";
import type { TrustedWorkflow, WorkflowPermission } from "../../../client/src/client.ts";
import { workflowPermissions } from "../../../client/src/values.ts";
import { conditionsOf } from "../../../client/src/workflow-conditions.ts";
import { PermissionCheckboxes } from "../parts/choices.tsx";
import { actionsColumn, RowButton, Time } from "../parts/components.tsx";
import { type ChangeDialogProps, ConfirmDialog, FormDialog } from "../parts/dialog.tsx";
import { Field } from "../parts/fields.tsx";
import { ListScreen, useList } from "../parts/list-screen.tsx";
import { useAction } from "../parts/use-action.ts";

/** The CI workflows that a project trusts. */
export function TrustedWorkflows({ projectId }: { projectId: string }) {
  const list = useList(`workflows ${projectId}`, (client) => client.listTrustedWorkflows(projectId));
  const { show, close, done } = list;
  const openForm = () =>
    show(<TrustDialog projectId={projectId} onClose={close} onDone={() => done("Workflow trusted.")} />);
  const remove = (workflow: TrustedWorkflow) =>
    show(
      <ConfirmDialog
        title={`Delete the trusted workflow “${nameOf(workflow)}”?`}
        verb="Delete"
        act={async (client) => {
          await client.deleteTrustedWorkflow(projectId, workflow.id);
          done("Trusted workflow deleted.");
        }}
        onClose={close}
      >
        <p>The next request of the workflow is rejected.</p>
      </ConfirmDialog>,
    );
  return (
    <ListScreen
      title="Trusted workflows"
      isSection
      list={list}
      create={{ label: "Trust a workflow", open: openForm }}
      lead={
        <p class="lead">
          CI jobs of a repository that act in this project with their own OIDC token, so that no key is stored.
        </p>
      }
      empty={{
        title: "No trusted workflows yet",
        text: "A workflow that is trusted needs no secret in CI.",
        command: "svc workflows trust <id of the repository>",
      }}
      columns={["Repository", "Only", "May do", "Created", actionsColumn]}
    >
      {(workflow) => (
        <>
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
            <RowButton verb="Delete" name={nameOf(workflow)} onClick={() => remove(workflow)} />
          </td>
        </>
      )}
    </ListScreen>
  );
}

const nameOf = ({ name, issuer, repository_id }: TrustedWorkflow) => name ?? `${issuer} ${repository_id}`;

/** The initial values of the form. The names are those of the API. */
const emptyForm = {
  issuer: "github",
  repository_id: "",
  name: "",
  ref: "refs/heads/main",
  environment: "",
  job_workflow_ref: "",
  event_name: "",
  repository_owner_id: "",
};
type FormField = keyof typeof emptyForm;

const moreFields: { path: FormField; label: string; hint: string; maxLength?: number }[] = [
  { path: "environment", label: "Environment", hint: "Only jobs with this environment." },
  {
    path: "job_workflow_ref",
    label: "Workflow file",
    hint: "With its ref: acme/shop/.github/workflows/deploy.yml@refs/heads/main",
  },
  { path: "event_name", label: "Event", hint: "What started the workflow, such as push. Empty = anything." },
  { path: "repository_owner_id", label: "Owner id", hint: "Only while it has this owner." },
  { path: "name", label: "Name", hint: "What the workflow does.", maxLength: 100 },
];

function TrustDialog({ projectId, onClose, onDone }: ChangeDialogProps & { projectId: string }) {
  const [fields, setFields] = useState(emptyForm);
  const [permissions, setPermissions] = useState<WorkflowPermission[]>(["webhooks:read", "deliveries:read"]);
  const create = useAction(async (client) => {
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
  const inputOf = (path: FormField) => ({
    path,
    error: create.error,
    value: fields[path],
    onInput: (value: string) => setFields((last) => ({ ...last, [path]: value })),
  });
  const isReady = fields.issuer.trim() !== "" && fields.repository_id.trim() !== "" && permissions.length > 0;
  return (
    <FormDialog
      title="Trust a workflow"
      action={create}
      verb="Trust"
      isReady={isReady}
      fields={Object.keys(emptyForm)}
      onClose={onClose}
    >
      <Field label="CI system" hint="github, gitlab, or another one that the service accepts." {...inputOf("issuer")} />
      <Field
        label="Repository id"
        hint="The numeric id, because a name can be taken over. GitHub: gh api repos/<owner>/<repository> --jq .id"
        {...inputOf("repository_id")}
      />
      <Field label="Ref" hint="Empty = any ref, also pull requests." isOptional {...inputOf("ref")} />
      <PermissionCheckboxes
        legend="The workflow may"
        own={workflowPermissions}
        chosen={permissions}
        onChange={setPermissions}
      />
      {/* Open after an error, which may be about a field in it. */}
      <details open={create.error !== undefined}>
        <summary>More conditions, and a name</summary>
        <div class="more-fields">
          {moreFields.map(({ path, ...texts }) => (
            <Field key={path} {...texts} isOptional {...inputOf(path)} />
          ))}
        </div>
      </details>
    </FormDialog>
  );
}
