import { useState } from "preact/hooks";
import type { ApiKey, CreatedApiKey } from "../../../client/src/client.ts";
import { useSignedIn } from "../data/signed-in.ts";
import { actionsColumn, RowButton, Time } from "../parts/components.tsx";
import { type ChangeDialogProps, ConfirmDialog, FormDialog, OverlapDialog } from "../parts/dialog.tsx";
import { Field } from "../parts/fields.tsx";
import { KeyForm, ShownKeyDialog } from "../parts/key-form.tsx";
import { KeyExpiry, KeyLimits, LastUse } from "../parts/key-limits.tsx";
import { ListScreen, useList } from "../parts/list-screen.tsx";
import { useAction } from "../parts/use-action.ts";

/** The user's API keys. */
export function Keys() {
  const { session, signOut } = useSignedIn();
  const list = useList("keys", (client) => client.listApiKeys({ include: "last_use" }));
  const { show, close, done } = list;
  const isSession = session.kind === "jwt";
  const isCurrent = ({ key_prefix }: ApiKey) => session.kind === "key" && session.token.startsWith(key_prefix);
  const showKey = (created: CreatedApiKey) => {
    show(<ShownKeyDialog created={created} onClose={close} />);
    list.reload();
  };
  const openForm = () =>
    show(
      <KeyForm
        title="New API key"
        create={(client, body) => client.createApiKey(body)}
        onClose={close}
        onCreated={showKey}
      />,
    );
  const rename = (key: ApiKey) =>
    show(<RenameKeyDialog apiKey={key} onClose={close} onDone={() => done("API key renamed.")} />);
  const roll = (key: ApiKey) =>
    show(
      <OverlapDialog
        title={`Roll “${key.name}”`}
        verb="Roll key"
        replaced="key"
        replace={async (client, overlap_seconds) => showKey(await client.rollApiKey(key.id, { overlap_seconds }))}
        onClose={close}
      >
        <p>
          Replaces the key with a new one, which is shown once. Name, permissions, projects and expiry stay the same.
          Both keys work during the overlap.
        </p>
      </OverlapDialog>,
    );
  const revoke = (key: ApiKey) =>
    show(
      <ConfirmDialog
        title={`Revoke “${key.name}”?`}
        verb="Revoke key"
        act={async (client) => {
          await client.deleteApiKey(key.id);
          if (isCurrent(key)) signOut();
          else done(`API key “${key.name}” revoked.`);
        }}
        onClose={close}
      >
        <p>
          All further requests with <code>{key.key_prefix}…</code> will be rejected. This cannot be undone.
        </p>
        {isCurrent(key) && <p class="note warning">You are signed in with this key and will be signed out.</p>}
      </ConfirmDialog>,
    );

  return (
    <ListScreen
      title="API keys"
      list={list}
      create={isSession ? { label: "New key", open: openForm } : undefined}
      lead={
        <>
          <p class="lead">
            For CI jobs and scripts. Give a key only the permissions that it needs. Keys that have expired or were
            revoked are not listed: the <a href="#/audit">audit</a> says who revoked them, and why.
          </p>
          {!isSession && (
            <p class="note neutral">
              You are signed in with an API key. API keys cannot create or roll keys, so that a leaked key stays
              revoked. To do so, sign in with a JWT.
            </p>
          )}
        </>
      }
      empty={{
        title: "No API keys yet",
        text: "A new key is shown once. Later you see only its prefix.",
        command: "svc keys create ci",
      }}
      columns={["Name", "Key", "May do", "Expires", "Last used", "Created", actionsColumn]}
    >
      {(key) => (
        <>
          <td class="strong breaks name">{key.name}</td>
          <td>
            <code>{key.key_prefix}…</code>
          </td>
          <td class="wraps">
            <KeyLimits apiKey={key} owner="you" />
          </td>
          <td data-label="expires">
            <KeyExpiry expires_at={key.expires_at} />
          </td>
          <td data-label="used">
            <LastUse apiKey={key} />
          </td>
          <td data-label="created">
            <Time at={key.created_at} />
          </td>
          <td class="end">
            <span class="row-actions">
              <RowButton verb="Rename" name={key.name} onClick={() => rename(key)} />
              {isSession && <RowButton verb="Roll" name={key.name} onClick={() => roll(key)} />}
              <RowButton verb="Revoke" name={key.name} onClick={() => revoke(key)} />
            </span>
          </td>
        </>
      )}
    </ListScreen>
  );
}

function RenameKeyDialog({ apiKey, onClose, onDone }: ChangeDialogProps & { apiKey: ApiKey }) {
  const [name, setName] = useState(apiKey.name);
  const rename = useAction(async (client) => {
    await client.updateApiKey(apiKey.id, { name });
    onDone();
  });
  const isReady = name.trim() !== "";
  return (
    <FormDialog
      title={`Rename “${apiKey.name}”`}
      action={rename}
      verb="Rename"
      isReady={isReady}
      fields={["name"]}
      onClose={onClose}
    >
      <Field label="Name" path="name" error={rename.error} value={name} onInput={setName} maxLength={100} />
    </FormDialog>
  );
}
