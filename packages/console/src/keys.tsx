import { useState } from "preact/hooks";
import type { ApiKey, CreatedApiKey } from "../../client/src/client.ts";
import { EmptyState, ErrorMessage, Field, Heading, Skeleton, Time } from "./components.tsx";
import { FormDialog, SecretDialog } from "./dialog.tsx";
import { useSignedIn } from "./signed-in.ts";
import { useAction } from "./use-action.ts";
import { useLoaded } from "./use-loaded.ts";

const KEYS_INTERVAL_MS = 15_000;

/** The user's API keys. */
export function Keys() {
  const { session, announce } = useSignedIn();
  const {
    data: keys,
    error,
    reload,
  } = useLoaded(
    "keys",
    (client) => client.listApiKeys(),
    () => KEYS_INTERVAL_MS,
  );
  const [open, setOpen] = useState<"create" | CreatedApiKey | { revoke: ApiKey }>();
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
        For CI jobs and scripts. A key made here does all that you may, until it is revoked. For a narrower one: svc
        keys create --help.
      </p>
      {!mayCreate && (
        <p class="note neutral">
          You are signed in with an API key. API keys cannot create other keys, so that a leaked key stays revoked. To
          create a key, sign in with a JWT.
        </p>
      )}
      <ErrorMessage error={error} />
      {keys === undefined && !error && <Skeleton />}
      {keys?.length === 0 && (
        <EmptyState title="No API keys yet">A new key is shown once. Later you see only its prefix.</EmptyState>
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
                <span class="visually-hidden">Actions</span>
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
        <CreateKeyDialog
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
            Send it in the header <code>Authorization: Bearer svc_…</code>
          </p>
        </SecretDialog>
      )}
      {typeof open === "object" && "revoke" in open && (
        <RevokeKeyDialog
          apiKey={open.revoke}
          onClose={close}
          onRevoked={() => {
            announce(`API key “${open.revoke.name}” revoked.`);
            close();
            reload();
          }}
        />
      )}
    </>
  );
}

function CreateKeyDialog({ onClose, onCreated }: { onClose(): void; onCreated(created: CreatedApiKey): void }) {
  const [name, setName] = useState("");
  const create = useAction(async (client) => onCreated(await client.createApiKey({ name })));
  return (
    <FormDialog title="New API key" action={create} verb="Create key" isReady={name.trim() !== ""} onClose={onClose}>
      <Field
        label="Name"
        path="name"
        hint="Where the key is used, for example “ci” or “my laptop”."
        error={create.error}
        value={name}
        onInput={setName}
        maxLength={100}
      />
    </FormDialog>
  );
}

function RevokeKeyDialog({ apiKey, onClose, onRevoked }: { apiKey: ApiKey; onClose(): void; onRevoked(): void }) {
  const { session, signOut } = useSignedIn();
  const isCurrent = session.kind === "key" && session.token.startsWith(apiKey.key_prefix);
  const revoke = useAction(async (client) => {
    await client.deleteApiKey(apiKey.id);
    if (isCurrent) signOut();
    else onRevoked();
  });
  return (
    <FormDialog title={`Revoke “${apiKey.name}”?`} action={revoke} verb="Revoke key" look="danger" onClose={onClose}>
      <p>
        All further requests with <code>{apiKey.key_prefix}…</code> will be rejected. This cannot be undone.
      </p>
      {isCurrent && <p class="note warning">You are signed in with this key and will be signed out.</p>}
    </FormDialog>
  );
}
