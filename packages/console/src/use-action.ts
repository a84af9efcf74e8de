import { useMemo, useState } from "preact/hooks";
import type { Client } from "../../client/src/client.ts";
import { ApiError } from "../../client/src/errors.ts";
import { useSignedIn } from "./signed-in.ts";

export interface Action {
  isBusy: boolean;
  /** Why the last run failed. */
  error: Error | undefined;
  run(): void;
}

/** An action that a click starts. Runs once at a time, and signs out on a 401. */
export function useAction(act: (client: Client) => Promise<void>): Action {
  const { connect, signOut } = useSignedIn();
  const client = useMemo(() => connect(), [connect]);
  const [isBusy, setBusy] = useState(false);
  const [error, setError] = useState<Error>();

  async function run(): Promise<void> {
    if (isBusy) return;
    setBusy(true);
    setError(undefined);
    try {
      await act(client);
    } catch (thrown) {
      if (thrown instanceof ApiError && thrown.status === 401) return signOut(thrown);
      setError(thrown as Error);
    } finally {
      setBusy(false);
    }
  }
  return { isBusy, error, run };
}
