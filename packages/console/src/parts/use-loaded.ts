import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import type { Client } from "../../../client/src/client.ts";
import { ApiError } from "../../../client/src/errors.ts";
import { beginOutage, endOutage } from "../data/outage.ts";
import { useSignedIn } from "../data/signed-in.ts";

export interface Loaded<Data> {
  /** The last result. Kept while later requests fail. */
  data: Data | undefined;
  /** Why the last request failed. */
  error: Error | undefined;
  /** Loads again now. */
  reload(): void;
}

const MIN_BACKOFF_MS = 2_000;
const MAX_BACKOFF_MS = 30_000;

/**
 * Loads data, and reloads it at an interval while the page is visible. Signs out on a 401.
 * @param key identifies the data: a new key starts a new load
 * @param load receives a client whose requests end with the component
 * @param intervalMs absent = load once; a function returns undefined if this data does not change. Failures are retried with
 * a backoff
 */
export function useLoaded<Data>(
  key: string,
  load: (client: Client) => Promise<Data>,
  intervalMs?: number | ((data: Data) => number | undefined),
): Loaded<Data> {
  const { connect, signOut } = useSignedIn();
  const [state, setState] = useState<{ key: string; data?: Data; error?: Error }>({ key });
  const [round, setRound] = useState(0);
  const latest = useRef({ load, intervalMs });
  latest.current = { load, intervalMs };

  useEffect(() => {
    const unmounted = new AbortController();
    const client = connect(unmounted.signal);
    let timer: ReturnType<typeof setTimeout> | undefined;
    let isDue = false;
    let failures = 0;

    async function run(): Promise<void> {
      let nextMs: number | undefined;
      try {
        const data = await latest.current.load(client);
        failures = 0;
        endOutage(unmounted);
        const interval = latest.current.intervalMs;
        nextMs = typeof interval === "function" ? interval(data) : interval;
        setState({ key, data });
      } catch (error) {
        if (unmounted.signal.aborted) return;
        if (error instanceof ApiError && error.status === 401) return signOut(error);
        failures += 1;
        if (isTransient(error)) beginOutage(unmounted, error as Error, retry);
        setState((last) => ({ ...(last.key === key ? last : { key }), error: error as Error }));
        if (isTransient(error)) nextMs = Math.min(MAX_BACKOFF_MS, MIN_BACKOFF_MS * 2 ** (failures - 1));
      }
      // Another run, which a retry has started, may have planned the next one.
      clearTimeout(timer);
      if (nextMs !== undefined && !unmounted.signal.aborted) timer = setTimeout(tick, nextMs);
    }

    function tick(): void {
      isDue = document.hidden;
      if (!isDue) void run();
    }

    function resumeWhenVisible(): void {
      if (isDue && !document.hidden) tick();
    }

    function retry(): void {
      clearTimeout(timer);
      void run();
    }

    function retryWhenOnline(): void {
      if (failures > 0) retry();
    }

    void run();
    document.addEventListener("visibilitychange", resumeWhenVisible);
    addEventListener("online", retryWhenOnline);
    return () => {
      unmounted.abort();
      endOutage(unmounted);
      clearTimeout(timer);
      document.removeEventListener("visibilitychange", resumeWhenVisible);
      removeEventListener("online", retryWhenOnline);
    };
  }, [key, round, connect, signOut]);

  const reload = useCallback(() => setRound((last) => last + 1), []);
  const { data, error } = state.key === key ? state : { data: undefined, error: undefined };
  return { data, error, reload };
}

/** A 404 or a 403 does not change by itself; everything else may. */
const isTransient = (error: unknown) => !(error instanceof ApiError) || error.status >= 500 || error.status === 429;
