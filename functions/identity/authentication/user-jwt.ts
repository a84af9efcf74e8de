import {
  isRequiredClaims,
  missingSignInSettings,
  requiredClaimsRule,
} from "../../foundation/manifest/sign-in-rules.ts";
import { settings } from "../../foundation/platform/env.ts";
import { SettingError } from "../../foundation/platform/errors.ts";
import { jsonListSetting } from "../../foundation/schema/json-setting.ts";
import type { Accepted } from "./credential-kind.ts";
import { verifyWithSharedSecret } from "./hs256.ts";
import type { Jwks } from "./jwks.ts";
import {
  type ClaimRules,
  invalidToken,
  type Jwt,
  requireSignInHeader,
  subjectFromClaims,
  userIdOfIssuer,
  userIdOfProvider,
} from "./jwt.ts";

/** The JWT of a user who has signed in: every token that is not of another kind, `svcp_…` included. */
export const userJwt = (_token: string, jwt: Jwt | undefined): Accepted => ({
  authType: "jwt",
  identify: async ({ now }) => ({ userId: await verifyJwt(jwt, now), authType: "jwt" }),
});

/**
 * Verifies a JWT (RFC 7519) and returns the user id.
 *
 * The configuration defines the keys, and each kind of key accepts only its own algorithms. A token selects one of
 * them. It cannot provide a key or another algorithm (RFC 8725, section 3.1).
 * @param given undefined = the token does not have the form of a JWT
 * @throws ApiError `invalid_token` or `token_expired`
 * @throws SettingError when no key is configured, or a setting is not valid; or the error of a failed fetch when the keys are unavailable
 */
export async function verifyJwt(given: Jwt | undefined, now: Date): Promise<string> {
  const jwt = requireSignInHeader(given);
  const { alg } = jwt.header;
  const jwks = publicKeyIssuer();
  let payload: unknown;
  if (alg === "HS256") payload = await verifyWithSharedSecret(jwt, now);
  else if (jwks !== undefined && JWKS_ALGORITHMS.includes(alg)) payload = await verifyWithPublicKeys(jwks, jwt, now);
  if (payload === undefined) throw invalidToken("The JWT is not signed by the identity provider.");
  const subject = subjectFromClaims(payload, now, claimRules());
  if (jwks === undefined || jwks.sharesUsers) return subject;
  return alg === "HS256" ? userIdOfProvider(subject, jwks.issuer) : userIdOfIssuer(subject, jwks.issuer);
}

/**
 * Returns the issuer of users with public keys; undefined = none.
 * @throws SettingError when a setting of sign-in tokens is missing, whatever keys verify the token
 */
export function publicKeyIssuer(): ReturnType<typeof settings.jwks> {
  const jwks = settings.jwks();
  const jwt = { issuer: settings.jwtIssuer(), audience: settings.jwtAudience() };
  const [missing] = missingSignInSettings({ keepsData: settings.keepsData(), jwt, jwks });
  if (missing) throw new SettingError(`${missing.variable} ${missing.rule}.`);
  return jwks;
}

/** Returns the claims that a sign-in token must have in this stage, each with its accepted value or values. */
export const requiredClaims = jsonListSetting(
  "JWT_REQUIRED_CLAIMS",
  settings.jwtRequiredClaims,
  '{"email_verified":true}',
  (value) => {
    if (isRequiredClaims(value)) return Object.entries(value);
    throw new SettingError(`It ${requiredClaimsRule}.`);
  },
);

/** The rules for the claims of tokens: those for times also for the tokens of workflows. */
export const claimRules = (): ClaimRules => ({
  maxLifetimeSeconds: settings.jwtMaxLifetimeSeconds(),
  clockSkewSeconds: settings.jwtClockSkewSeconds(),
  requiresIssuedAt: settings.jwtRequiresIssuedAt(),
  requiredClaims: requiredClaims(),
});

/** Signature algorithms that are accepted from an issuer with public keys. */
const JWKS_ALGORITHMS = ["RS256", "ES256", "EdDSA"];

/** Loads the library on the first such token, which makes the cold start 2 % shorter for stages without an issuer. */
export async function verifyWithPublicKeys(jwks: Jwks, jwt: Jwt, now: Date): Promise<unknown> {
  const { verifyWithJwks } = await import("./jwks.ts");
  return verifyWithJwks(jwks, jwt, now);
}
