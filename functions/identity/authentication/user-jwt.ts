import {
  audienceClaims,
  isIssuerUrl,
  isRequiredClaims,
  missingSignInSettings,
  requiredClaimsRule,
} from "../../foundation/manifest/sign-in-rules.ts";
import { settings } from "../../foundation/platform/env.ts";
import { SettingError } from "../../foundation/platform/errors.ts";
import { jsonListSetting } from "../../foundation/schema/json-setting.ts";
import type { Accepted } from "./credential-kind.ts";
import { isSignedWithSecret } from "./hs256.ts";
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
export const userJwt = (token: string, jwt: Jwt | undefined): Accepted => ({
  authType: "jwt",
  identify: async ({ now }) => ({ userId: await verifyJwt(token, jwt, now), authType: "jwt" }),
});

/**
 * Verifies a JWT (RFC 7519) and returns the user id.
 *
 * The configuration defines the keys, and each kind of key accepts only its own algorithms. A token selects one of
 * them. It cannot provide a key or another algorithm (RFC 8725, section 3.1).
 * @param parsed undefined = the token does not have the form of a JWT
 * @throws ApiError `invalid_token` or `token_expired`; ClaimError only for a token with a valid signature
 * @throws SettingError when no key is configured, or a setting is not valid; or the error of a failed fetch when the keys are unavailable
 */
export async function verifyJwt(token: string, parsed: Jwt | undefined, now: Date): Promise<string> {
  const jwt = requireSignInHeader(token, parsed);
  const { alg } = jwt.header;
  const jwks = publicKeyIssuer();
  if (alg === "HS256") {
    if (!(await isSignedWithSecret(jwt, now))) throw notSigned();
    const issuance = { issuer: settings.jwtIssuer(), audiences: audiences("JWT_AUDIENCE", settings.jwtAudience()) };
    const subject = subjectFromClaims(jwt.claims, now, claimRules(issuance));
    return jwks === undefined || jwks.sharesUsers ? subject : userIdOfProvider(subject, jwks.issuer);
  }
  if (jwks === undefined || !JWKS_ALGORITHMS.includes(alg)) throw notSigned();
  const readSubject = () => subjectFromClaims(jwt.claims, now, claimRules(jwks));
  if (!(await isSignedWithPublicKey(jwks.uri, jwt, now, readSubject))) throw notSigned();
  return jwks.sharesUsers ? readSubject() : userIdOfIssuer(readSubject(), jwks.issuer);
}

const notSigned = () => invalidToken("The JWT is not signed by the identity provider.");

/** The issuer of users with public keys. */
interface PublicKeyIssuer {
  issuer: string;
  /** Address of the keys. */
  uri: string;
  audiences: string[];
  /** The claim with the audience of tokens that have no `aud`; undefined = such tokens are rejected. */
  audienceClaim: string | undefined;
  /** Whether its subjects are the same users as those of HS256 tokens. */
  sharesUsers: boolean | undefined;
}

/**
 * Returns the issuer of users with public keys; undefined = none.
 * @throws SettingError when a setting of sign-in tokens is missing or not valid, whatever keys verify the token
 */
export function publicKeyIssuer(): PublicKeyIssuer | undefined {
  const jwks = configuredIssuer();
  const jwt = { issuer: settings.jwtIssuer(), audience: settings.jwtAudience() };
  const [missing] = missingSignInSettings({ keepsData: settings.keepsData(), jwt, jwks });
  if (missing) throw new SettingError(`${missing.variable} ${missing.rule}.`);
  // A local run calls this at its start: a wrong list must not wait for the first HS256 token.
  audiences("JWT_AUDIENCE", jwt.audience);
  return jwks;
}

function configuredIssuer(): PublicKeyIssuer | undefined {
  const issuer = settings.jwksIssuer();
  if (issuer === undefined) return undefined;
  const uri = settings.jwksUri() ?? `${issuer.replace(/\/$/, "")}/.well-known/jwks.json`;
  if (!isIssuerUrl(uri, settings.isLocal())) {
    const rule = "must be an https URL, or in a local run an http URL of this machine";
    throw new SettingError(`JWKS_URI (by default derived from JWKS_ISSUER) ${rule}, not "${uri}"`);
  }
  const accepted = audiences("JWKS_AUDIENCE", settings.jwksAudience());
  if (accepted === undefined) {
    throw new SettingError(
      "JWKS_AUDIENCE is not set. Set it to the audience (aud) of the tokens for this API: without it, tokens that the issuer signs for any other application would be accepted.",
    );
  }
  const audienceClaim = settings.jwksAudienceClaim();
  if (audienceClaim !== undefined && !audienceClaims.some((claim) => claim === audienceClaim)) {
    throw new SettingError(`JWKS_AUDIENCE_CLAIM must be ${audienceClaims.join(" or ")}, not "${audienceClaim}"`);
  }
  return { issuer, uri, audiences: accepted, audienceClaim, sharesUsers: settings.jwksSharesUsers() };
}

/** @throws SettingError for JSON and quotes, which no token has, and for a list without a name, which would accept any */
function audiences(name: string, text: string | undefined): string[] | undefined {
  if (text && /["[\]]/.test(text))
    throw new SettingError(`${name} is a comma-separated list without brackets and quotes, not ${text}`);
  const list = text?.split(",").flatMap((part) => part.trim() || []);
  if (list?.length === 0)
    throw new SettingError(`${name} names no audience. Set it to that of the tokens for this API.`);
  return list;
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
export const claimRules = (issuance: Pick<ClaimRules, "issuer" | "audiences" | "audienceClaim">): ClaimRules => ({
  ...issuance,
  maxLifetimeSeconds: settings.jwtMaxLifetimeSeconds(),
  clockSkewSeconds: settings.jwtClockSkewSeconds(),
  requiresIssuedAt: settings.jwtRequiresIssuedAt(),
  requiredClaims: requiredClaims(),
});

/** Signature algorithms that are accepted from an issuer with public keys. RFC 9864 names EdDSA with its curve. */
const JWKS_ALGORITHMS = ["RS256", "ES256", "EdDSA", "Ed25519"];

/** Loads the library on the first such token, which makes the cold start 2 % shorter for stages without an issuer. */
export async function isSignedWithPublicKey(
  ...parameters: Parameters<typeof import("./jwks.ts").isSignedByIssuer>
): Promise<boolean> {
  const { isSignedByIssuer } = await import("./jwks.ts");
  return isSignedByIssuer(...parameters);
}
