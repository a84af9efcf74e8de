import { useId, useState } from "preact/hooks";
import type { Refusal } from "./api.ts";
import { Failure } from "./parts.tsx";
import { type Session, sessionOf } from "./session.ts";

interface SignInProps {
  /** Why the session before has ended. */
  reason: Refusal | undefined;
  /** Asks the API whether it takes the credential. */
  check(candidate: Session): Promise<unknown>;
  onSignIn(accepted: Session): void;
}

export function SignIn({ reason, check, onSignIn }: SignInProps) {
  const id = useId();
  const [pasted, setPasted] = useState("");
  const [isBusy, setBusy] = useState(false);
  const [failure, setFailure] = useState<Error | undefined>(reason);

  async function signIn(event: Event): Promise<void> {
    event.preventDefault();
    const candidate = sessionOf(pasted);
    if (isBusy || candidate.token === "") return;
    setBusy(true);
    setFailure(undefined);
    try {
      // No header can carry it otherwise, and the browser's own words for that help nobody.
      if (!/^[\x21-\x7e]+$/.test(candidate.token))
        throw new Error("This is no token: it has blanks or special characters.");
      await check(candidate);
      onSignIn(candidate);
    } catch (error) {
      setFailure(error as Error);
    } finally {
      setBusy(false);
    }
  }

  return (
    <main class="sign-in">
      <form onSubmit={signIn}>
        <img src="icon.svg" alt="" width="36" height="36" />
        <h1>Deployment webhooks</h1>
        {reason !== undefined && failure === reason && (
          <p class="lead">Your session has ended. Please sign in again.</p>
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
            Kept by this tab until it is closed or you sign out. An API key acts with the rights of its owner.
          </p>
        </div>
        <Failure error={failure} />
        <button type="submit" class="primary wide" aria-disabled={isBusy}>
          Sign in
        </button>
      </form>
    </main>
  );
}
