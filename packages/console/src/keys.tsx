import { useState } from "preact/hooks";
import type { ApiKey, CreatedApiKey } from "../../client/src/client.ts";
import { EmptyState, ErrorMessage, Field, Heading, RadioGroup, RowButton, Skeleton, Time } from "./components.tsx";
import { FormDialog } from "./dialog.tsx";
import { KeyForm, ShownKeyDialog } from "./key-form.tsx";
import { KeyEnd, KeyLimits, LastUse } from "./key-limits.tsx";
import { useSignedIn } from "./signed-in.ts";
import { useAction } from "./use-action.ts";
import { useLoaded } from "./use-loaded.ts";

const KEYS_INTERVAL_MS = 15_000;

/** The open dialog. With a created or rolled key: the dialog that shows it. */
type Open = "create" | { shown: CreatedApiKey } | { rename: ApiKey } | { roll: ApiKey } | { revoke: ApiKey };

/** The user's API keys. */
export function Keys() {
  const { session, announce } = useSignedIn();
  const {
    data: keys,
    error,
    reload,
  } = useLoaded(
    "keys",
    (client) => client.listApiKeys({ include: "last_use" }),
    () => KEYS_INTERVAL_MS,
  );
  const [open, setOpen] = useState<Open>();
  const close = () => setOpen(undefined);
  const show = (shown: CreatedApiKey) => {
    setOpen({ shown });
    reload();
  };
  const done = (message: string) => {
    announce(message);
    close();
    reload();
  };
  const isSession = session.kind === "jwt";

  return (
    <>
      <div class="head">
        <Heading>API keys</Heading>
        {isSession && (
          <button type="button" class="primary" onClick={() => setOpen("create")}>
            New key
          </button>
        )}
      </div>
      <p class="lead">
        For CI jobs and scripts. Give a key only the permissions that it needs. Keys that have ended or were revoked are
        not listed: the <a href="#/audit">audit</a> says who revoked them, and why.
      </p>
      {!isSession && (
        <p class="note neutral">
          You are signed in with an API key. API keys cannot create or roll keys, so that a leaked key stays revoked. To
          do so, sign in with a JWT.
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
              <th scope="col">May do</th>
              <th scope="col">Ends</th>
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
                <td class="strong breaks name">{key.name}</td>
                <td>
                  <code>{key.key_prefix}…</code>
                </td>
                <td class="wraps">
                  <KeyLimits apiKey={key} owner="you" />
                </td>
                <td data-label="ends">
                  <KeyEnd expires_at={key.expires_at} />
                </td>
                <td data-label="used">
                  <LastUse apiKey={key} />
                </td>
                <td data-label="created">
                  <Time at={key.created_at} />
                </td>
                <td class="end">
                  <span class="row-actions">
                    <RowButton verb="Rename" name={key.name} onClick={() => setOpen({ rename: key })} />
                    {isSession && <RowButton verb="Roll" name={key.name} onClick={() => setOpen({ roll: key })} />}
                    <RowButton verb="Revoke" name={key.name} onClick={() => setOpen({ revoke: key })} />
                  </span>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      {open === "create" && (
        <KeyForm
          title="New API key"
          create={(client, body) => client.createApiKey(body)}
          onClose={close}
          onCreated={show}
        />
      )}
      {typeof open === "object" && "shown" in open && <ShownKeyDialog created={open.shown} onClose={close} />}
      {typeof open === "object" && "rename" in open && (
        <RenameKeyDialog apiKey={open.rename} onClose={close} onRenamed={() => done("API key renamed.")} />
      )}
      {typeof open === "object" && "roll" in open && (
        <RollKeyDialog apiKey={open.roll} onClose={close} onRolled={show} />
      )}
      {typeof open === "object" && "revoke" in open && (
        <RevokeKeyDialog
          apiKey={open.revoke}
          onClose={close}
          onRevoked={() => done(`API key “${open.revoke.name}” revoked.`)}
        />
      )}
    </>
  );
}

interface KeyDialogProps {
  apiKey: ApiKey;
  onClose(): void;
}

function RenameKeyDialog({ apiKey, onClose, onRenamed }: KeyDialogProps & { onRenamed(): void }) {
  const [name, setName] = useState(apiKey.name);
  const rename = useAction(async (client) => {
    await client.updateApiKey(apiKey.id, { name });
    onRenamed();
  });
  const isReady = name.trim() !== "";
  return (
    <FormDialog title={`Rename “${apiKey.name}”`} action={rename} verb="Rename" isReady={isReady} onClose={onClose}>
      <Field label="Name" path="name" error={rename.error} value={name} onInput={setName} maxLength={100} />
    </FormDialog>
  );
}

const overlaps = {
  "0": "None: the old key ends immediately",
  "3600": "1 hour",
  "86400": "1 day",
  "604800": "7 days",
};
type Overlap = keyof typeof overlaps;

function RollKeyDialog({ apiKey, onClose, onRolled }: KeyDialogProps & { onRolled(rolled: CreatedApiKey): void }) {
  const [overlap, setOverlap] = useState<Overlap>("86400");
  const roll = useAction(async (client) =>
    onRolled(await client.rollApiKey(apiKey.id, { overlap_seconds: Number(overlap) })),
  );
  return (
    <FormDialog title={`Roll “${apiKey.name}”`} action={roll} verb="Roll key" onClose={onClose}>
      <p>
        Replaces the key with a new one, which is shown once. Name, permissions, projects and end stay the same. Both
        keys work during the overlap.
      </p>
      <RadioGroup
        legend="Overlap"
        values={Object.keys(overlaps) as Overlap[]}
        chosen={overlap}
        onChange={setOverlap}
        labelOf={(value) => overlaps[value]}
      />
    </FormDialog>
  );
}

function RevokeKeyDialog({ apiKey, onClose, onRevoked }: KeyDialogProps & { onRevoked(): void }) {
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
