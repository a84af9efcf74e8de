import { useState } from "preact/hooks";
import type { Client } from "../../../client/src/client.ts";
import { useSignedIn } from "../data/signed-in.ts";
import { ErrorMessage, Heading, Time } from "../parts/components.tsx";
import { useDialog } from "../parts/dialog.tsx";
import { Field } from "../parts/fields.tsx";
import { KeyForm } from "../parts/key-form.tsx";
import { useAction } from "../parts/use-action.ts";

type SignIn = Awaited<ReturnType<Client["decideSignIn"]>>;

/**
 * Confirms the sign-in of a machine by its code. The code is typed: a link with a code could be sent to a user
 * (phishing).
 */
export function DeviceSignIn() {
  const { session, announce } = useSignedIn();
  const [code, setCode] = useState("");
  /** The code may be changed while it is looked up: only the machine that has the code may be decided on. */
  const [looked, setLooked] = useState<{ code: string; signIn: SignIn }>();
  const found = looked?.code === code ? looked.signIn : undefined;
  const { show, close, dialog } = useDialog(() => {});
  const look = useAction(async (client) => setLooked({ code, signIn: await client.decideSignIn({ user_code: code }) }));
  const end = (message: string) => {
    close();
    setLooked(undefined);
    setCode("");
    announce(message);
  };
  const deny = useAction(async (client) => {
    await client.decideSignIn({ user_code: code, decision: "deny" });
    end("Denied. The machine gets no key.");
  });
  const approve = ({ client: name }: SignIn) =>
    show(
      <KeyForm
        title="What may the machine do?"
        verb="Give it a key"
        initialName={name}
        longestDays={90}
        create={(client, limits) => client.decideSignIn({ user_code: code, decision: "approve", ...limits })}
        onClose={close}
        onCreated={() =>
          end("Approved. The machine gets its key in a few seconds: it is in the list of your API keys.")
        }
      />,
    );
  return (
    <>
      <Heading>Sign in a machine</Heading>
      {session.kind !== "jwt" ? (
        <p class="note neutral">You are signed in with an API key, which cannot create others. Sign in with a JWT.</p>
      ) : (
        <form
          onSubmit={(event) => {
            event.preventDefault();
            look.run();
          }}
        >
          <Field
            label="Code"
            path="user_code"
            hint="As the machine shows it, for example BCDF-GHJK."
            error={look.error}
            value={code}
            onInput={setCode}
            maxLength={20}
          />
          <ErrorMessage error={look.error ?? deny.error} />
          {found === undefined && (
            <button type="submit" class="primary" aria-disabled={code.trim() === "" || look.isBusy}>
              Look up
            </button>
          )}
          {found && (
            <>
              <p>
                <strong class="breaks">{found.client}</strong>
                {found.address !== null && (
                  <>
                    {" "}
                    at <code>{found.address}</code>
                  </>
                )}{" "}
                wants to act as you. It asked <Time at={found.created_at} />. Its name is what it says about itself.
              </p>
              <p class="note warning">
                Did you start this yourself, on your own machine, and is the code the one that it shows? If you received
                the code from another person, deny it: that person would get your key.
              </p>
              <div class="actions">
                <button type="button" class="plain" onClick={deny.run}>
                  Deny
                </button>
                <button type="button" class="primary" onClick={() => approve(found)}>
                  Choose what it may do…
                </button>
              </div>
            </>
          )}
        </form>
      )}
      {dialog}
    </>
  );
}
