import { useState } from "preact/hooks";
import { FormDialog, SecretDialog } from "./dialog.tsx";
import { Empty, Failure, Field, Heading, Time, Waiting } from "./parts.tsx";
import type { ApiKey, NewApiKey } from "./records.ts";
import { useAction, useLoaded, useSignedIn } from "./signed-in.ts";

/** The caller's API keys. */
export function Keys() {
  const { api, session, say } = useSignedIn();
  const {
    data: keys,
    failure,
    reload,
  } = useLoaded(
    "keys",
    (signal) => api.keys(signal),
    () => 15_000,
  );
  const [open, setOpen] = useState<"create" | NewApiKey | { revoke: ApiKey }>();
  const close = () => setOpen(undefined);
  const mayCreate = session.kind === "jwt";

  return (
    <>
      <div class="head">
        <Heading>API keys</Heading>
        {mayCreate && (
          <button type="button" class="primary" onClick={() => setOpen("create")}>
            New key
          </button>
        )}
      </div>
      <p class="lead">
        For CI jobs and scripts. A key acts with your rights and does not expire; revoke what is not used.
      </p>
      {!mayCreate && (
        <p class="note calm">
          You are signed in with an API key. A key cannot make keys: one that leaked would outlive its own revocation.
          Sign in with a JWT to make one.
        </p>
      )}
      <Failure error={failure} />
      {keys === undefined && !failure && <Waiting />}
      {keys?.length === 0 && (
        <Empty title="No keys yet">A key that is made here is shown once, and then only its prefix.</Empty>
      )}
      {keys !== undefined && keys.length > 0 && (
        <table>
          <thead>
            <tr>
              <th scope="col">Name</th>
              <th scope="col">Key</th>
              <th scope="col">Last used</th>
              <th scope="col">Created</th>
              <th scope="col">
                <span class="unseen">Actions</span>
              </th>
            </tr>
          </thead>
          <tbody>
            {keys.map((key) => (
              <tr key={key.id}>
                <td class="strong breaks">{key.name}</td>
                <td>
                  <code>{key.key_prefix}…</code>
                </td>
                <td data-label="used">
                  {key.last_used_at === null ? <span class="fine">never</span> : <Time at={key.last_used_at} />}
                </td>
                <td data-label="created">
                  <Time at={key.created_at} />
                </td>
                <td class="end">
                  <button
                    type="button"
                    class="plain small"
                    aria-label={`Revoke ${key.name}`}
                    onClick={() => setOpen({ revoke: key })}
                  >
                    Revoke
                  </button>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      {open === "create" && (
        <CreateKey
          onClose={close}
          onCreated={(created) => {
            setOpen(created);
            reload();
          }}
        />
      )}
      {typeof open === "object" && "key" in open && (
        <SecretDialog title="Your new API key" label={open.name} secret={open.key} onClose={close}>
          <p class="fine">
            Send it as <code>Authorization: Bearer svc_…</code>
          </p>
        </SecretDialog>
      )}
      {typeof open === "object" && "revoke" in open && (
        <RevokeKey
          apiKey={open.revoke}
          onClose={close}
          onRevoked={() => {
            say(`The key “${open.revoke.name}” is revoked.`);
            close();
            reload();
          }}
        />
      )}
    </>
  );
}

function CreateKey({ onClose, onCreated }: { onClose(): void; onCreated(created: NewApiKey): void }) {
  const { api } = useSignedIn();
  const [name, setName] = useState("");
  const create = useAction(async () => onCreated(await api.createKey(name)));
  return (
    <FormDialog title="New API key" action={create} verb="Create key" isReady={name.trim() !== ""} onClose={onClose}>
      <Field
        label="Name"
        path="name"
        hint="What it is for, such as “ci” or “my laptop”."
        failure={create.failure}
        value={name}
        onInput={setName}
        maxLength={100}
      />
    </FormDialog>
  );
}

function RevokeKey({ apiKey, onClose, onRevoked }: { apiKey: ApiKey; onClose(): void; onRevoked(): void }) {
  const { api, session, signOut } = useSignedIn();
  const isOwn = session.kind === "key" && session.token.startsWith(apiKey.key_prefix);
  const revoke = useAction(async () => {
    await api.revokeKey(apiKey.id);
    if (isOwn) signOut();
    else onRevoked();
  });
  return (
    <FormDialog title={`Revoke “${apiKey.name}”?`} action={revoke} verb="Revoke key" look="danger" onClose={onClose}>
      <p>
        <code>{apiKey.key_prefix}…</code> is refused from its very next request on. This cannot be undone.
      </p>
      {isOwn && <p class="note wait">This is the key you are signed in with: you will be signed out.</p>}
    </FormDialog>
  );
}
