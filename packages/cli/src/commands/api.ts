import type { Client, ClientOptions } from "../../../client/src/client.ts";
import { ApiError, NetworkError } from "../../../client/src/errors.ts";
import { parseExactly } from "../../../client/src/exact-json.ts";
import type { Globals } from "../terminal/globals.ts";
import { note } from "../terminal/terminal.ts";
import { packageVersion } from "../version.ts";
import { fetchWithJobToken } from "./job-token.ts";
import { useProxy } from "./proxy.ts";
import { openSession, type Session } from "./session.ts";

/** Creates a client for the service and credential of a session. Without a credential, only calls that need none succeed. */
export async function connect(
  { debug }: Globals,
  { baseUrl, token }: Pick<Session, "baseUrl"> & Partial<Session>,
  options: Pick<ClientOptions, "signal" | "maxRetries" | "maxWaitSeconds"> = {},
): Promise<Client> {
  // Imported here because --help and completion do not need it.
  const { createClient } = await import("../../../client/src/client.ts");
  useProxy();
  const fetch = token === undefined ? undefined : fetchWithJobToken(token);
  return createClient({
    baseUrl,
    userAgent: `svc/${packageVersion()}`,
    ...(token !== undefined && { token }),
    ...(fetch && { fetch }),
    parseJson: parseExactly,
    onWait: (seconds) => note(`The service is busy or limits requests. Trying again in ${Math.ceil(seconds)} s.`),
    ...(debug && {
      onResponse: ({ method, url, status, requestId }) =>
        note(`${method} ${new URL(url).pathname} ${status} ${requestId ?? ""}`),
    }),
    ...options,
  });
}

/** Creates a client from the command line, the environment or `svc login`. @throws CommandError without a credential */
export const signedIn = (globals: Globals): Promise<Client> => connect(globals, openSession(globals));

/** Whether the same call may work later. */
export const isTemporary = (error: unknown): boolean =>
  error instanceof NetworkError || (error instanceof ApiError && (error.status === 429 || error.status >= 500));
