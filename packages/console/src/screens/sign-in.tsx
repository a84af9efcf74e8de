import { useEffect, useId, useState } from "preact/hooks";
import type { ApiError } from "../../../client/src/errors.ts";
import { type Session, sessionOf } from "../data/session.ts";
import { ErrorMessage, updateTitle } from "../parts/components.tsx";

interface SignInProps {
  /** Why the previous session ended; undefined if the user signed out. */
  reason: ApiError | undefined;
  /** Prints a link that signs in; undefined = not a local run. */
  command: string | undefined;
  /** Sends a request with the credential. Throws if the API rejects it. */
  check(candidate: Session): Promise<unknown>;
  onSignIn(accepted: Session): void;
}

export function SignIn({ reason, command, check, onSignIn }: SignInProps) {
  const id = useId();
  const [pasted, setPasted] = useState("");
  const [isBusy, setBusy] = useState(false);
  const [error, setError] = useState<Error | undefined>(reason);
  useEffect(updateTitle, []);

  async function signIn(event: Event): Promise<void> {
    event.preventDefault();
    const candidate = sessionOf(pasted);
    if (isBusy) return;
    setBusy(true);
    setError(undefined);
    try {
      // Other characters are not allowed in a header, and the browser's own message is hard to understand.
      if (!/^[\x21-\x7e]+$/.test(candidate.token))
        throw new Error("Not a token: it has spaces or special characters. Copy it again.");
      await check(candidate);
      onSignIn(candidate);
    } catch (thrown) {
      setError(thrown as Error);
    } finally {
      setBusy(false);
    }
  }

  return (
    <main class="sign-in">
      <form onSubmit={signIn}>
        <img src="icon.svg" alt="" width="36" height="36" />
        <h1>Deployment webhooks</h1>
        {reason !== undefined && error === reason && (
          <p class="lead">Your session has ended. Sign in again: the open form keeps what you typed.</p>
        )}
        {command !== undefined && (
          <p class="fine">
            This is a local run. To sign in as its demo user, open the link that <code>{command}</code> prints.
          </p>
        )}
        <div class="field">
          <label for={id}>JWT or API key</label>
          <input
            id={id}
            type="password"
            value={pasted}
            required
            autoComplete="off"
            spellcheck={false}
            aria-describedby={`${id}-hint`}
            onInput={(event) => setPasted(event.currentTarget.value)}
          />
          <p class="fine" id={`${id}-hint`}>
            Stored in this tab until you close it or sign out.
          </p>
        </div>
        <ErrorMessage error={error} />
        <button type="submit" class="primary wide" aria-disabled={isBusy}>
          Sign in
        </button>
      </form>
    </main>
  );
}
