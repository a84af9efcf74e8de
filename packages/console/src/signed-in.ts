import { createContext } from "preact";
import { useCallback, useContext, useEffect, useRef, useState } from "preact/hooks";
import { type Api, Refusal } from "./api.ts";
import type { Session } from "./session.ts";

/* What every screen behind the sign-in needs: the API, its answers over time, and a way to ask it for something. */

export interface SignedIn {
  api: Api;
  session: Session;
  /** Whether deployment events can be sent from here: in a local run. */
  sendsEvents: boolean;
  /** Tells what has happened, to eyes and to screen readers. */
  say(message: string): void;
  /** @param reason why the API no longer takes the credential; absent when somebody wants to leave */
  signOut(reason?: Refusal): void;
}

export const SignedInContext = createContext<SignedIn | undefined>(undefined);

export function useSignedIn(): SignedIn {
  const signedIn = useContext(SignedInContext);
  if (!signedIn) throw new Error("nobody is signed in");
  return signedIn;
}

export interface Loaded<Data> {
  /** The last answer, also while a newer one fails to come. */
  data: Data | undefined;
  /** Why the last try gave no answer. */
  failure: Error | undefined;
  /** Asks again now. */
  reload(): void;
}

const SLOWEST_MS = 30_000;

/**
 * Loads something, and again every so often while the page is visible.
 * @param key what is loaded: another key starts anew
 * @param everyMs undefined = once; longer after failures
 */
export function useLoaded<Data>(
  key: string,
  load: (signal: AbortSignal) => Promise<Data>,
  everyMs?: (data: Data) => number,
): Loaded<Data> {
  const { signOut } = useSignedIn();
  const [state, setState] = useState<{ key: string; data?: Data; failure?: Error }>({ key });
  const [round, setRound] = useState(0);
  const latest = useRef({ load, everyMs });
  latest.current = { load, everyMs };

  useEffect(() => {
    const life = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    let isDue = false;
    let failures = 0;

    async function run(): Promise<void> {
      let nextMs: number | undefined;
      try {
        const data = await latest.current.load(life.signal);
        failures = 0;
        nextMs = latest.current.everyMs?.(data);
        setState({ key, data });
      } catch (error) {
        if (life.signal.aborted) return;
        if (error instanceof Refusal && error.status === 401) return signOut(error);
        setState((last) => ({ ...(last.key === key ? last : { key }), failure: error as Error }));
        failures += 1;
        // Nobody is told anew what does not exist; all else may mend itself.
        const mayMend = !(error instanceof Refusal) || error.status >= 500 || error.status === 429;
        if (mayMend) nextMs = Math.min(SLOWEST_MS, 2000 * 2 ** (failures - 1));
      }
      if (nextMs !== undefined && !life.signal.aborted) timer = setTimeout(tick, nextMs);
    }

    function tick(): void {
      isDue = document.hidden;
      if (!isDue) run();
    }

    function resume(): void {
      if (isDue && !document.hidden) tick();
    }

    /** The connection is back: no reason to sit out the wait. */
    function hurry(): void {
      if (failures === 0) return;
      clearTimeout(timer);
      tick();
    }

    run();
    document.addEventListener("visibilitychange", resume);
    addEventListener("online", hurry);
    return () => {
      life.abort();
      clearTimeout(timer);
      document.removeEventListener("visibilitychange", resume);
      removeEventListener("online", hurry);
    };
  }, [key, round, signOut]);

  const reload = useCallback(() => setRound((last) => last + 1), []);
  const { data, failure } = state.key === key ? state : { data: undefined, failure: undefined };
  return { data, failure, reload };
}

export interface Action {
  isBusy: boolean;
  failure: Error | undefined;
  run(): void;
}

/** Something that is asked for by a click: one at a time, with what came of it. */
export function useAction(act: () => Promise<void>): Action {
  const { signOut } = useSignedIn();
  const [isBusy, setBusy] = useState(false);
  const [failure, setFailure] = useState<Error>();

  async function run(): Promise<void> {
    if (isBusy) return;
    setBusy(true);
    setFailure(undefined);
    try {
      await act();
    } catch (error) {
      if (error instanceof Refusal && error.status === 401) return signOut(error);
      setFailure(error as Error);
    } finally {
      setBusy(false);
    }
  }
  return { isBusy, failure, run };
}

/** The time, again and again. @param everyMs 1000 for a countdown */
export function useNow(everyMs = 5_000): number {
  const [now, setNow] = useState(Date.now);
  useEffect(() => {
    setNow(Date.now());
    const timer = setInterval(() => setNow(Date.now()), everyMs);
    return () => clearInterval(timer);
  }, [everyMs]);
  return now;
}
