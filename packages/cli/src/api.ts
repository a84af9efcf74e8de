import type { Client, ClientOptions } from "../../client/src/client.ts";
import { ApiError, NetworkError } from "../../client/src/errors.ts";
import { parseExactly } from "./exact-json.ts";
import type { Globals } from "./globals.ts";
import { openSession, type Session } from "./session.ts";
import { note } from "./terminal.ts";

/** The way to the service, as whoever is signed in. */
export async function connect(
  { debug }: Globals,
  { baseUrl, token }: Session,
  options: Pick<ClientOptions, "signal" | "maxRetries"> = {},
): Promise<Client> {
  // Loaded when it is used: --help and completion do without.
  const { createClient } = await import("../../client/src/client.ts");
  return createClient({
    baseUrl,
    token,
    parseJson: parseExactly,
    ...(debug && {
      onAnswer: ({ method, url, status, requestId }) =>
        note(`${method} ${new URL(url).pathname} ${status} ${requestId ?? ""}`),
    }),
    ...options,
  });
}

/** Likewise, with the credential that the command line, the environment or `svc login` says. */
export const signedIn = (globals: Globals): Promise<Client> => connect(globals, openSession(globals));

/** Whether the same call may work later. */
export const isTemporary = (error: unknown): boolean =>
  error instanceof NetworkError || (error instanceof ApiError && (error.status === 429 || error.status >= 500));
