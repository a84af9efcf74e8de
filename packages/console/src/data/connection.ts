import { type Client, createClient } from "../../../client/src/client.ts";
import { NetworkError } from "../../../client/src/errors.ts";
import { parseExactly } from "../../../client/src/exact-json.ts";

/** A longer `Retry-After` is shown as an error, with its time. */
const MAX_WAIT_SECONDS = 60;
const MAX_RETRIES = 3;

interface ConnectionOptions {
  /** The address of the API, with its stage. */
  baseUrl: string;
  token: string;
  /** Called before each wait for a retry, with the length of the wait in seconds. */
  onWait(seconds: number): void;
}

/** Creates a client. @param signal aborts its requests and its waits; absent = they are not aborted */
export type Connect = (signal?: AbortSignal) => Client;

/** Prepares clients that send one credential. */
export function connectionTo(options: ConnectionOptions): Connect {
  return (signal) =>
    createClient({
      ...options,
      ...(signal && { signal }),
      maxRetries: MAX_RETRIES,
      maxWaitSeconds: MAX_WAIT_SECONDS,
      // After a 503 only a read is certain to have had no effect.
      mayRetry: ({ method, status }) => status === 429 || method === "GET",
      parseJson: parseExactly,
      fetch: fetchWithoutCookies,
    });
}

/**
 * Fetches without cookies, redirects and the HTTP cache, so that a credential goes only in its header to this address.
 * @throws NetworkError if there is no response, or the reason of the signal
 */
export async function fetchWithoutCookies(input: RequestInfo | URL, init: RequestInit = {}): Promise<Response> {
  try {
    return await fetch(input, { ...init, credentials: "omit", redirect: "error", cache: "no-store" });
  } catch (cause) {
    if (init.signal?.aborted) throw cause;
    throw new NetworkError(navigator.onLine ? "Could not reach the service." : "This device is offline.", { cause });
  }
}
