import { note } from "../terminal/terminal.ts";
import { claimsOf } from "./claims.ts";

/* GitHub's token of a job is valid for five minutes, and a job can request another one at any time. */

/** Covers a request and clocks that differ. */
const MIN_LEFT_MS = 30_000;
const REQUEST_TIMEOUT_MS = 10_000;

const isEnding = (token: string): boolean => Number(claimsOf(token).exp) * 1000 - Date.now() < MIN_LEFT_MS;

/**
 * Returns a `fetch` that sends the token of a GitHub job, and requests the next one of the same audience before it expires; undefined =
 * the credential is another one, or the job may not request tokens (`permissions: id-token: write`).
 * https://docs.github.com/en/actions/reference/security/oidc
 */
export function fetchWithJobToken(token: string): typeof fetch | undefined {
  const { ACTIONS_ID_TOKEN_REQUEST_URL: url = "", ACTIONS_ID_TOKEN_REQUEST_TOKEN: requestToken } = process.env;
  const { aud, iss, repository_id } = claimsOf(token);
  if (!requestToken || !URL.canParse(url) || typeof aud !== "string" || repository_id === undefined) return undefined;
  let current = token;
  return async (input, init) => {
    if (isEnding(current)) current = (await nextToken()) ?? current;
    const request = new Request(input, init);
    request.headers.set("Authorization", `Bearer ${current}`);
    return fetch(request);
  };

  async function nextToken(): Promise<string | undefined> {
    const address = new URL(url);
    address.searchParams.set("audience", String(aud));
    try {
      const headers = { Authorization: `Bearer ${requestToken}` };
      const response = await fetch(address, { headers, signal: AbortSignal.timeout(REQUEST_TIMEOUT_MS) });
      if (!response.ok) throw new Error(`${address.host} returned ${response.status}`);
      const { value } = (await response.json()) as { value: string };
      const claims = claimsOf(value);
      // SVC_API_KEY may be the token of another repository, and then stays the identity.
      if (claims.iss !== iss || claims.repository_id !== repository_id) throw new Error("it is of another repository");
      return value;
    } catch (error) {
      note(`Could not renew the token of the job: ${(error as Error).message}.`);
      return undefined;
    }
  }
}
