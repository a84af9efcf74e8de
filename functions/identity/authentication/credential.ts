import { apiKeyCredential } from "./api-key-credential.ts";
import type { Accepted, CredentialKind } from "./credential-kind.ts";
import { type Jwt, parseJwt } from "./jwt.ts";
import { userJwt } from "./user-jwt.ts";
import { workflowJwt } from "./workflow-jwt.ts";

/** The first kind that accepts a token verifies it. */
const kinds: CredentialKind[] = [apiKeyCredential, workflowJwt, userJwt];

/** The credential in the `Authorization` header. */
export interface Credential extends Accepted {
  token: string;
  /** undefined = the token does not have the form of a JWT. */
  jwt: Jwt | undefined;
}

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
  const jwt = parseJwt(token);
  for (const kind of kinds) {
    const accepted = kind(token, jwt);
    if (accepted) return { token, jwt, ...accepted };
  }
  return undefined;
}

/**
 * Returns all values of a header.
 * @param wanted its name in lower case
 */
export function headerValues(headers: Record<string, string[] | undefined>, wanted: string): string[] {
  const names = Object.keys(headers).filter((name) => name.toLowerCase() === wanted);
  return names.flatMap((name) => headers[name] ?? []);
}
