import { note } from "../terminal/terminal.ts";
import { claimsOf } from "./session.ts";

/** Time for a request, and for clocks that differ. */
const MIN_LEFT_MS = 30_000;

/**
 * GitHub's token of a job is valid for five minutes. Returns a `fetch` that sends the token and requests the next one before it expires;
 * undefined = the credential is another one, or the job may not request tokens (`permissions: id-token: write`).
 * https://docs.github.com/en/actions/reference/security/oidc
 */
export function fetchWithJobToken(token: string): typeof fetch | undefined {
  const { ACTIONS_ID_TOKEN_REQUEST_URL: url = "", ACTIONS_ID_TOKEN_REQUEST_TOKEN: requestToken } = process.env;
  const { aud, iss, repository_id } = claimsOf(token);
  if (!requestToken || !URL.canParse(url) || typeof aud !== "string" || repository_id === undefined) return undefined;
  const address = new URL(url);
  address.searchParams.set("audience", aud);
  let current = token;
  return async (input, init) => {
    if (Number(claimsOf(current).exp) * 1000 - Date.now() < MIN_LEFT_MS) current = await nextToken();
    const request = new Request(input, init);
    request.headers.set("Authorization", `Bearer ${current}`);
    return fetch(request);
  };

  /** @returns the current token if there is no other: the service then says that it has expired */
  async function nextToken(): Promise<string> {
    try {
      const headers = { Authorization: `Bearer ${requestToken}` };
      const response = await fetch(address, { headers, signal: AbortSignal.timeout(10_000) });
      const { value } = Object(response.ok && (await response.json()));
      const claims = claimsOf(String(value));
      // SVC_API_KEY may be the token of another repository, and then stays the identity.
      if (claims.iss === iss && claims.repository_id === repository_id) return value;
      note(
        `Could not renew the token of the job: ${address.host} returned ${response.status}, without one of its kind.`,
      );
    } catch (error) {
      note(`Could not renew the token of the job: ${(error as Error).message}.`);
    }
    return current;
  }
}
