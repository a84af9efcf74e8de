/* Rules for the settings of sign-in tokens. The synthesis, a local run and the functions on AWS check the same ones. */

export interface SignInSettings {
  /** Whether the stage keeps its data; false in a local run. */
  keepsData: boolean;
  /** The provider with the shared secret (HS256). Every stage has such a secret. */
  jwt?: { issuer?: string | undefined; audience?: string | string[] | undefined } | undefined;
  /** The issuer with public keys. */
  jwks?: { issuer: string; sharesUsers?: boolean | undefined } | undefined;
}

/** Returns an issuer without what may differ in two spellings of it. Only for settings: the `iss` of a token must be equal. */
export const issuerIdentity = (issuer = ""): string =>
  issuer
    .trim()
    .toLowerCase()
    .replace(/^https?:\/\/|:443(?=\/|$)|\/+$/g, "");

const LOOPBACK = new Set(["127.0.0.1", "[::1]", "localhost"]);

/** Returns whether a text is an https URL without a password. @param allowsLoopback accepts http to this machine, for a local run */
export function isIssuerUrl(url: string, allowsLoopback: boolean): boolean {
  const parsed = URL.parse(url);
  if (parsed === null || parsed.username !== "" || parsed.password !== "") return false;
  const { protocol, hostname } = parsed;
  return protocol === "https:" || (allowsLoopback && protocol === "http:" && LOOPBACK.has(hostname));
}

/**
 * Claims with the audience of tokens that have no `aud`: `client_id` of Cognito's access tokens, `azp` of Clerk's session tokens.
 * https://docs.aws.amazon.com/cognito/latest/developerguide/amazon-cognito-user-pools-using-the-access-token.html,
 * https://clerk.com/docs/guides/sessions/session-tokens
 */
export const audienceClaims = ["client_id", "azp"] as const;

const dataRule =
  "must be set where data is kept: without it, a token that the provider signed for another application is a sign-in";
const usersRule =
  "must be true or false, because the same provider may sign with the shared secret (HS256) and with public keys. " +
  "true = a user has the same id, keys and projects with both. " +
  "false = a user of public keys has another id, <issuer>#<sub>, without the keys and projects of the HS256 user";

/** Returns the settings that are missing: as an option of a stage and as an environment variable, and why. */
export function missingSignInSettings({ keepsData, jwt: { issuer, audience } = {}, jwks }: SignInSettings) {
  const mayBeOneProvider = issuer === undefined || issuerIdentity(issuer) === issuerIdentity(jwks?.issuer);
  const lacksUsers = jwks !== undefined && jwks.sharesUsers === undefined && mayBeOneProvider;
  return [
    { isMissing: keepsData && !issuer, option: "jwt.issuer", variable: "JWT_ISSUER", rule: dataRule },
    { isMissing: keepsData && !audience, option: "jwt.audience", variable: "JWT_AUDIENCE", rule: dataRule },
    { isMissing: lacksUsers, option: "jwks.sharesUsers", variable: "JWKS_SHARES_USERS", rule: usersRule },
  ].filter(({ isMissing }) => isMissing);
}

type ClaimValue = string | number | boolean;
/** Claims that a sign-in token must have, each with its accepted value or values. */
export type RequiredClaims = Record<string, ClaimValue | ClaimValue[]>;

export const requiredClaimsRule =
  "must have claims, each with a string, a number, true, false or a list of them; names have up to 100 letters, digits and _.:/-";

/** Returns whether a value is a map of required claims. */
export function isRequiredClaims(value: unknown): value is RequiredClaims {
  const isValue = (item: unknown) => ["string", "number", "boolean"].includes(typeof item);
  const isAccepted = (item: unknown) =>
    isValue(item) || (Array.isArray(item) && item.length > 0 && item.every(isValue));
  const isClaim = ([name, item]: [string, unknown]) => /^[\w.:/-]{1,100}$/.test(name) && isAccepted(item);
  return Object(value) === value && !Array.isArray(value) && Object.entries(value as object).every(isClaim);
}
