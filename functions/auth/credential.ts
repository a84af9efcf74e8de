import { API_KEY_PREFIX } from "../api-keys/api-key.ts";

/** What the `Authorization` header holds. Every token that does not start with `svc_` is a JWT, `svcp_…` included. */
export type Credential = { kind: "api_key" | "jwt"; token: string };

// RFC 6750, section 2.1: the scheme in any case, spaces, and a token of these characters.
const BEARER = /^Bearer +([A-Za-z0-9._~+/=-]+) *$/i;

/**
 * Reads the credential of a request.
 * @param headers name -> values, as in `multiValueHeaders`; names come in any case
 * @returns undefined unless there is exactly one `Authorization` header and it holds a bearer token
 */
export function readCredential(headers: Record<string, string[] | undefined>): Credential | undefined {
  const names = Object.keys(headers).filter((name) => name.toLowerCase() === "authorization");
  const values = names.flatMap((name) => headers[name] ?? []);
  const [value] = values;
  if (value === undefined || values.length > 1) return undefined;
  const token = BEARER.exec(value)?.[1];
  if (token === undefined) return undefined;
  return { kind: token.startsWith(API_KEY_PREFIX) ? "api_key" : "jwt", token };
}
