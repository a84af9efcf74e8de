import { kindOfKey } from "../api-keys/imported-keys.ts";
import { API_KEY_PREFIX } from "../api-keys/key-format.ts";

/**
 * The credential in the `Authorization` header. A token without the prefix `svc_`, or one of keys that the stage imports,
 * counts as a JWT, `svcp_…` included.
 */
export type Credential = { kind: "api_key" | "jwt"; token: string };

// RFC 6750, section 2.1: case-insensitive scheme, spaces, token.
const BEARER = /^Bearer +([A-Za-z0-9._~+/=-]+) *$/i;

/**
 * Reads the credential of a request.
 * @param headers values by name, as in `multiValueHeaders`; names are case-insensitive
 * @returns undefined unless there is exactly one `Authorization` header and it contains a bearer token
 */
export function readCredential(headers: Record<string, string[] | undefined>): Credential | undefined {
  const values = headerValues(headers, "authorization");
  const [value] = values;
  if (value === undefined || values.length > 1) return undefined;
  const token = BEARER.exec(value)?.[1];
  if (token === undefined) return undefined;
  const isKey = token.startsWith(API_KEY_PREFIX) || kindOfKey(token) !== undefined;
  return { kind: isKey ? "api_key" : "jwt", token };
}

/**
 * Returns all values of a header.
 * @param wanted its name in lower case
 */
export function headerValues(headers: Record<string, string[] | undefined>, wanted: string): string[] {
  const names = Object.keys(headers).filter((name) => name.toLowerCase() === wanted);
  return names.flatMap((name) => headers[name] ?? []);
}
