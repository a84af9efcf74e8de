import { useState } from "preact/hooks";
import type { ApiKey, Client, CreatedApiKey } from "../../../client/src/client.ts";
import { useSignedIn } from "../data/signed-in.ts";
import { actionsColumn, EmptyState, ErrorMessage, RowButton, Skeleton, Time } from "../parts/components.tsx";
import { ConfirmDialog, Dialog, FormDialog } from "../parts/dialog.tsx";
import { Field, RadioGroup } from "../parts/fields.tsx";
import { KeyForm, ShownKeyDialog } from "../parts/key-form.tsx";
import { KeyExpiry, KeyLimits, LastUse } from "../parts/key-limits.tsx";
import { ListScreen, useList } from "../parts/list-screen.tsx";
import { useAction } from "../parts/use-action.ts";
import { useLoaded } from "../parts/use-loaded.ts";

type ServiceAccount = Awaited<ReturnType<Client["listServiceAccounts"]>>[number];

const refOf = ({ project_id, id }: ServiceAccount) => ({ projectId: project_id, serviceAccountId: id });

/** The service accounts of a project. @param mayCreate whether the session may create accounts and keys */
export function ServiceAccounts({ projectId, mayCreate }: { projectId: string; mayCreate: boolean }) {
  const { announce } = useSignedIn();
  const list = useList(`accounts ${projectId}`, (client) => client.listServiceAccounts(projectId));
  const { show, close, done } = list;
  const openKeyForm = (account: ServiceAccount) =>
    show(
      <KeyForm
        title={`New key for “${account.name}”`}
        serviceAccount={account}
        create={(client, body) => client.createServiceAccountApiKey(refOf(account), body)}
        onClose={close}
        onCreated={(created: CreatedApiKey) => show(<ShownKeyDialog created={created} onClose={close} />)}
      />,
    );
  const openForm = () =>
    show(
      <CreateAccountDialog
        projectId={projectId}
        onClose={close}
        onCreated={(account) => {
          announce("Service account created.");
          list.reload();
          openKeyForm(account);
        }}
      />,
    );
  const openKeys = (account: ServiceAccount) =>
    show(
      <AccountKeysDialog
        account={account}
        mayCreate={mayCreate}
        onNewKey={() => openKeyForm(account)}
        onClose={close}
      />,
    );
  const remove = (account: ServiceAccount) =>
    show(
      <ConfirmDialog
        title={`Delete “${account.name}”?`}
        verb="Delete"
        act={async (client) => {
          await client.deleteServiceAccount(refOf(account));
          done(`Service account “${account.name}” deleted.`);
        }}
        onClose={close}
      >
        <p>Its API keys are deleted too, and their requests are rejected at once. This cannot be undone.</p>
      </ConfirmDialog>,
    );
  return (
    <ListScreen
      title="Service accounts"
      isSection
      list={list}
      create={mayCreate ? { label: "New service account", open: openForm } : undefined}
      lead={
        <p class="lead">Callers without a person, for CI jobs. They own keys and stay when people leave the project.</p>
      }
      empty={{
        title: "No service accounts yet",
        text: "Their keys stay valid when people leave.",
        command: "svc service-accounts create ci --role admin",
      }}
      columns={["Name", "Role", "Created", actionsColumn]}
    >
      {(account) => (
        <>
          <td class="strong breaks">{account.name}</td>
          <td>{account.role}</td>
          <td data-label="created">
            <Time at={account.created_at} /> <span class="fine">by {account.created_by}</span>
          </td>
          <td class="end">
            <span class="row-actions">
              <RowButton verb="Keys" name={account.name} onClick={() => openKeys(account)} />
              <RowButton verb="Delete" name={account.name} onClick={() => remove(account)} />
            </span>
          </td>
        </>
      )}
    </ListScreen>
  );
}

interface CreateAccountDialogProps {
  projectId: string;
  onClose(): void;
  onCreated(account: ServiceAccount): void;
}

const roles = {
  viewer: "viewer: its keys may read",
  admin: "admin: its keys may read and change",
} satisfies Record<ServiceAccount["role"], string>;
const roleNames: ServiceAccount["role"][] = ["viewer", "admin"];

function CreateAccountDialog({ projectId, onClose, onCreated }: CreateAccountDialogProps) {
  const [name, setName] = useState("");
  const [role, setRole] = useState<ServiceAccount["role"]>("viewer");
  const create = useAction(async (client) => onCreated(await client.createServiceAccount(projectId, { name, role })));
  const isReady = name.trim() !== "";
  return (
    <FormDialog
      title="New service account"
      action={create}
      verb="Create"
      isReady={isReady}
      fields={["name"]}
      onClose={onClose}
    >
      <Field
        label="Name"
        path="name"
        hint="What it is for, for example “deploy job”."
        error={create.error}
        value={name}
        onInput={setName}
        maxLength={100}
      />
      <RadioGroup
        legend="Role in the project"
        values={roleNames}
        chosen={role}
        onChange={setRole}
        labelOf={(value) => roles[value]}
      />
    </FormDialog>
  );
}

interface AccountKeysDialogProps {
  account: ServiceAccount;
  mayCreate: boolean;
  onNewKey(): void;
  onClose(): void;
}

function AccountKeysDialog({ account, mayCreate, onNewKey, onClose }: AccountKeysDialogProps) {
  const loaded = useLoaded(`keys of ${account.id}`, (client) =>
    client.listServiceAccountApiKeys(refOf(account), { include: "last_use" }),
  );
  const { data: keys, error, reload } = loaded;
  return (
    <Dialog title={`Keys of “${account.name}”`} onClose={onClose}>
      <ErrorMessage error={error} />
      {keys === undefined && !error && <Skeleton rows={2} />}
      {keys?.length === 0 && <EmptyState title="No keys yet" />}
      {keys !== undefined && keys.length > 0 && (
        <ul class="cards">
          {keys.map((key) => (
            <AccountKey key={key.id} account={account} apiKey={key} onDeleted={reload} />
          ))}
        </ul>
      )}
      <div class="buttons">
        <button type="button" class="plain" onClick={onClose}>
          Close
        </button>
        {mayCreate && (
          <button type="button" class="primary" onClick={onNewKey}>
            New key
          </button>
        )}
      </div>
    </Dialog>
  );
}

interface AccountKeyProps {
  account: ServiceAccount;
  apiKey: ApiKey;
  onDeleted(): void;
}

/** The second click on the button deletes the key, because a dialog is open already. */
function AccountKey({ account, apiKey, onDeleted }: AccountKeyProps) {
  const [isAsked, setAsked] = useState(false);
  const remove = useAction(async (client) => {
    await client.deleteServiceAccountApiKey(refOf(account), apiKey.id);
    onDeleted();
  });
  const label = isAsked ? "Confirm: delete" : "Delete";
  return (
    <li>
      <div class="line">
        <strong class="breaks">{apiKey.name}</strong>
        <code class="fine">{apiKey.key_prefix}…</code>
        <button
          type="button"
          class={isAsked ? "danger small end" : "plain small end"}
          aria-label={`${label} ${apiKey.name}`}
          aria-disabled={remove.isBusy}
          onClick={() => (isAsked ? remove.run() : setAsked(true))}
        >
          {label}
        </button>
      </div>
      <KeyLimits apiKey={apiKey} owner={`a project ${account.role}`} />
      <p class="fine">
        expires <KeyExpiry expires_at={apiKey.expires_at} /> · used <LastUse apiKey={apiKey} />
      </p>
      <ErrorMessage error={remove.error} />
    </li>
  );
}
