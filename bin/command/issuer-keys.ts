import { downloadKeys } from "../../functions/identity/authentication/jwks.ts";
import { publicKeyIssuer } from "../../functions/identity/authentication/user-jwt.ts";

/**
 * Fetches the keys of the issuer of users once. Without this, the first sign-in would find a wrong address, with a 503.
 * @returns a warning when there are none; undefined = there are keys, or no such issuer
 */
export async function missingKeys(): Promise<string | undefined> {
  const jwks = publicKeyIssuer();
  if (jwks === undefined) return undefined;
  const keys = await downloadKeys(jwks.uri).catch((error: Error) => error.message);
  if (Array.isArray(keys) && keys.length > 0) return undefined;
  const reason = Array.isArray(keys) ? `${jwks.uri} has no key for RS256, ES256 or EdDSA` : keys;
  const discovery = `${jwks.issuer.replace(/\/$/, "")}/.well-known/openid-configuration`;
  return `No JWT of JWKS_ISSUER can be verified: ${reason}. The address of its keys is jwks_uri in ${discovery}: set JWKS_URI.`;
}
