import { useMemo, useState } from "preact/hooks";
import type { Client } from "../../../client/src/client.ts";
import { ApiError } from "../../../client/src/errors.ts";
import { useSignedIn } from "../data/signed-in.ts";

export interface Action {
  isBusy: boolean;
  /** Why the last run failed. */
  error: Error | undefined;
  run(): void;
}

/** Opens a screen after an action, unless the user has left the one on which the action was started. */
export type LeadTo = (href: string) => void;

/** An action that a click starts. Runs once at a time, and signs out on a 401. */
export function useAction(act: (client: Client, leadTo: LeadTo) => Promise<void>): Action {
  const { connect, signOut } = useSignedIn();
  const client = useMemo(() => connect(), [connect]);
  const [isBusy, setBusy] = useState(false);
  const [error, setError] = useState<Error>();

  async function run(): Promise<void> {
    if (isBusy) return;
    setBusy(true);
    setError(undefined);
    const { hash } = location;
    try {
      await act(client, (href) => {
        if (location.hash === hash) location.hash = href;
      });
    } catch (thrown) {
      if (thrown instanceof ApiError && thrown.status === 401) return signOut(thrown);
      setError(thrown as Error);
    } finally {
      setBusy(false);
    }
  }
  return { isBusy, error, run };
}
