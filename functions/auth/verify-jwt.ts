import { settings } from "../platform/env.ts";
import { SettingError } from "../platform/errors.ts";
import { readHeader } from "./compact-jwt.ts";
import { jwtLibrary, verifyHs256 } from "./hs256.ts";
import type { Jwks } from "./jwks.ts";
import { type ClaimRules, invalidToken, subjectFromClaims, userIdOfIssuer, userIdOfProvider } from "./jwt-claims.ts";
import { jwtKeys, refreshJwtKeys } from "./jwt-secret.ts";

/**
 * Verifies a JWT (RFC 7519) and returns the user id.
 *
 * The configuration defines the keys, and each kind of key accepts only its own algorithms. A token selects one of
 * them. It cannot provide a key or another algorithm (RFC 8725, section 3.1).
 * @throws ApiError `invalid_token` or `token_expired`
 * @throws SettingError when no key is configured; or the error of a failed fetch when the keys are unavailable
 */
export async function verifyJwt(token: string, now: Date): Promise<string> {
  const { alg } = readHeader(token);
  const jwks = settings.jwks();
  let payload: unknown;
  if (alg === "HS256") payload = await verifyWithSharedSecret(token, now);
  else if (jwks !== undefined && JWKS_ALGORITHMS.includes(alg)) payload = await verifyWithPublicKeys(jwks, token, now);
  if (payload === undefined) throw invalidToken("The JWT is not signed by the identity provider.");
  const subject = subjectFromClaims(payload, now, claimRules());
  if (jwks === undefined || jwks.sharesUsers) return subject;
  return alg === "HS256" ? userIdOfProvider(subject, jwks.issuer) : userIdOfIssuer(subject, jwks.issuer);
}

/** The rules for the times of all tokens, of users and of workflows. */
export const claimRules = (): ClaimRules => ({
  maxLifetimeSeconds: settings.jwtMaxLifetimeSeconds(),
  clockSkewSeconds: settings.jwtClockSkewSeconds(),
  requiresIssuedAt: settings.jwtRequiresIssuedAt(),
});

/** Signature algorithms that are accepted from an issuer with public keys. */
const JWKS_ALGORITHMS = ["RS256", "ES256", "EdDSA"];

const isJwksConfigured = (): boolean => settings.jwks() !== undefined;

/** Loads the library on the first such token, which makes the cold start 2 % shorter for stages without an issuer. */
export async function verifyWithPublicKeys(jwks: Jwks, token: string, now: Date): Promise<unknown> {
  const { verifyWithJwks } = await import("./jwks.ts");
  return verifyWithJwks(jwks, token, now);
}

async function verifyWithSharedSecret(token: string, now: Date): Promise<unknown> {
  const expected = { issuer: settings.jwtIssuer(), audience: settings.jwtAudience() };
  const library = await jwtLibrary();
  const verifyWith = (keys: Awaited<ReturnType<typeof jwtKeys>>) => {
    for (const key of keys) {
      const payload = verifyHs256(library, token, key, now, expected);
      if (payload !== undefined) return payload;
    }
    return undefined;
  };
  const keys = await jwtKeys(now);
  if (keys.length === 0 && !isJwksConfigured()) {
    throw new SettingError("No JWT can be verified. Set JWT_SECRET, JWT_SECRET_ARN or JWKS_ISSUER.");
  }
  return verifyWith(keys) ?? verifyWith((await refreshJwtKeys(now)) ?? []);
}
