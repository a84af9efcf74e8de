import * as z from "zod/mini";
import { reservedUserIds } from "../../foundation/access/identity.ts";
import type { RequiredClaims } from "../../foundation/manifest/sign-in-rules.ts";
import { ApiError } from "../../foundation/platform/errors.ts";
import { parseJson } from "../../foundation/platform/parse-json.ts";
import { userId } from "../../foundation/schema/input.ts";

/* JWTs: their form (RFC 7515, section 3.1), before the signature is verified, and the rules for their claims after it. */

/** A text with the form of a JWT, parsed once. Nothing of it is verified. */
export interface Jwt {
  token: string;
  header: { alg: string; kid?: unknown; typ?: unknown; crit?: unknown };
  /** undefined = the payload is not a JSON object. */
  claims: Record<string, unknown> | undefined;
}

const MAX_TOKEN_BYTES = 8 * 1024;
const JWT = /^([\w-]+)\.([\w-]+)\.([\w-]+)$/;

/** Returns undefined for a text that is not a JWT, such as an API key. */
export function parseJwt(token: string): Jwt | undefined {
  const parts = token.length <= MAX_TOKEN_BYTES && JWT.exec(token);
  if (!parts) return undefined;
  const [, encodedHeader = "", payload = "", signature = ""] = parts;
  const header = parseHeader(encodedHeader);
  if (typeof header?.alg !== "string" || !isCanonical(signature)) return undefined;
  return { token, header: header as Jwt["header"], claims: parseObject(payload) };
}

/**
 * The types (`typ`) of tokens that sign in, in lower case and without `application/`; absent is accepted too. A provider signs other
 * tokens with the same keys: logout tokens, security events, proofs of possession. RFC 7519 section 5.1 (JWT), RFC 9068 section 2.1
 * (at+jwt), RFC 7515 section 4.1.9 (JOSE), RFC 8725 section 3.11. Which provider uses which: docs/configuration.md.
 */
const SIGN_IN_TYPES = ["jwt", "at+jwt", "id_token+jwt", "jose"];
/** What an error may name of a type: gateway responses insert the message without JSON escaping. */
const PRINTABLE_TYPE = /^[\w.+/-]{1,40}$/;

/**
 * Returns a JWT that may sign in, by its header.
 * @throws ApiError `invalid_token` for text that is not a JWT, for a JWT with a critical header, and for one of another type
 */
export function requireSignInHeader(jwt: Jwt | undefined): Jwt {
  if (jwt === undefined) throw invalidToken("The token is neither an API key nor a well-formed JWT.");
  // RFC 7515, section 4.1.11: reject a token with an unsupported critical extension. No extension is supported.
  if ("crit" in jwt.header) throw invalidToken("The JWT has a critical header that is not supported.");
  const { typ = "JWT" } = jwt.header;
  if (typeof typ !== "string" || !SIGN_IN_TYPES.includes(typ.toLowerCase().replace(/^application\//, ""))) {
    const named = typeof typ === "string" && PRINTABLE_TYPE.test(typ) ? typ : "unknown";
    throw invalidToken(`The JWT has the type ${named}, which does not sign in.`);
  }
  return jwt;
}

/**
 * The characters that may end base64url text, by its length modulo 4: the bits that no byte uses are 0. Text of another length is
 * never whole bytes. https://www.rfc-editor.org/rfc/rfc4648#section-3.5
 */
const CANONICAL_END = [/[\w-]$/, /^$/, /[AQgw]$/, /[AEIMQUYcgkosw048]$/];

/** Returns whether base64url text is the only one for its bytes. A signature that is not is a second form of the same token. */
const isCanonical = (base64url: string): boolean => CANONICAL_END[base64url.length % 4]?.test(base64url) ?? false;

let lastHeader: { text: string; fields: Record<string, unknown> | undefined } | undefined;

/** Parses a token header. All tokens of a provider have the same one: the cache saves 7 % of the authorizer's time. */
function parseHeader(text: string): Record<string, unknown> | undefined {
  if (lastHeader?.text !== text) lastHeader = { text, fields: parseObject(text) };
  return lastHeader.fields;
}

function parseObject(base64url: string): Record<string, unknown> | undefined {
  const value = parseJson(Buffer.from(base64url, "base64url").toString("utf8"));
  return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : undefined;
}

/** Returns the claim `exp` of a token that is verified, as an ISO 8601 time. */
export const expiryOf = (token: string): string => new Date(Number(parseJwt(token)?.claims?.exp) * 1000).toISOString();

/*
 * The rules for the claims of a JWT, the same for all issuers. All claims are optional in RFC 7519 and the libraries
 * accept absent claims, so each claim that this service uses is checked here.
 */

const seconds = z.number().check(z.nonnegative());

const times = { exp: seconds, iat: z.optional(seconds), nbf: z.optional(seconds) };
const timeClaims = z.object(times);
const signInClaims = z.object({ sub: userId, ...times });

export interface ClaimRules {
  /** Maximum time between issue (`iat`) and expiry (`exp`), so that a mistake of the provider does not make one valid for years. */
  maxLifetimeSeconds: number;
  /** Accepted difference between the clocks of the provider and of this service. It does not extend the expiry. */
  clockSkewSeconds: number;
  /** Whether a token without `iat` is rejected. Its age is unknown: it may have been valid for longer. */
  requiresIssuedAt: boolean;
  /** Claims that a sign-in token must have, each with its accepted value or values. */
  requiredClaims?: RequiredValues;
}

type RequiredValues = [claim: string, accepted: RequiredClaims[string]][];

/**
 * Values of claims with which a token does not sign in, unless the stage requires the claim itself: those of anonymous visitors and
 * of services, whose API keys would never expire, and of tokens for another purpose that are signed with the same key.
 * Supabase: https://supabase.com/docs/guides/auth/jwt-fields. Firebase: https://firebase.google.com/docs/rules/rules-and-auth.
 * Keycloak names the kind in `typ`, Cognito in `token_use`, libraries that sign refresh tokens with HS256 in `token_type` or `type`.
 */
const rejectedClaims: Record<string, string[]> = {
  is_anonymous: ["true"],
  role: ["anon", "service_role"],
  "firebase.sign_in_provider": ["anonymous"],
  typ: ["Refresh", "Offline", "Logout"],
  token_use: ["refresh"],
  token_type: ["refresh", "refresh_token"],
  type: ["refresh"],
};

export const invalidToken = (message: string, options?: ErrorOptions) =>
  new ApiError("invalid_token", message, options);
export const invalidClaim = (claim: string) => invalidToken(`The ${claim} claim of the JWT is missing or invalid.`);
export const notValidYet = () => invalidToken("The JWT is not valid yet.");
/** The token names a key that is not known, and was not looked up because others have reached the limit. It may be valid. */
export class KeyNotLookedUpError extends ApiError {
  constructor() {
    super("service_unavailable", "Too many JWTs with unknown keys. Try again.", { headers: { "Retry-After": "2" } });
  }
}
/** @param advice what the caller can do */
export const tokenExpired = (advice = "Sign in again.") =>
  new ApiError("token_expired", `The JWT has expired. ${advice}`);

/**
 * Returns the subject in the claims of a sign-in token with a valid signature.
 * @throws ApiError `token_expired`, or `invalid_token` with the name of the claim to fix
 */
export function subjectFromClaims(payload: unknown, now: Date, rules: ClaimRules): string {
  const { sub, ...times } = parseClaims(signInClaims, payload);
  requireValues(Object(payload), rules.requiredClaims);
  const isReserved = Object.values(reservedUserIds).some((prefix) => sub.startsWith(prefix));
  if (isReserved) throw invalidClaim("sub");
  requireValidTimes(times, now, rules);
  return sub;
}

/**
 * Checks the times in the claims of a token with a valid signature.
 * @throws ApiError `token_expired`, or `invalid_token` with the name of the claim to fix
 */
export function checkTimes(payload: unknown, now: Date, rules: ClaimRules): void {
  const times = parseClaims(timeClaims, payload);
  requireValues(Object(payload));
  requireValidTimes(times, now, rules);
}

function parseClaims<Schema extends z.ZodMiniType>(schema: Schema, payload: unknown): z.output<Schema> {
  const parsed = z.safeParse(schema, payload);
  if (parsed.success) return parsed.data;
  const claim = parsed.error.issues[0]?.path[0];
  throw claim === undefined ? invalidToken("The JWT has no claims.") : invalidClaim(String(claim));
}

/**
 * Rejects a token of another kind, and one without a required claim. Logout tokens and security events have the claim `events`:
 * https://openid.net/specs/openid-connect-backchannel-1_0.html#LogoutToken, RFC 8417 section 2.2.
 */
function requireValues(claims: object, required: RequiredValues = []): void {
  const rejected = Object.entries(rejectedClaims).filter(([name]) => !required.some(([other]) => other === name));
  const [claim] =
    required.find(([name, accepted]) => !hasValue(claims, name, [accepted].flat().map(String))) ??
    rejected.find(([name, values]) => hasValue(claims, name, values)) ??
    Object.keys(claims).filter((name) => name === "events");
  if (claim !== undefined) throw invalidToken(`The JWT does not sign in: see its claim ${claim}.`);
}

/**
 * Returns whether a claim has one of the values, or is a list with one of them. A name with dots may be that of a claim in another
 * one. Some providers send `true` as text.
 */
function hasValue(claims: object, name: string, values: string[]): boolean {
  const own = (from: unknown, key: string): unknown =>
    Object.hasOwn(Object(from), key) ? Object(from)[key] : undefined;
  const claim = own(claims, name) ?? name.split(".").reduce(own, claims);
  return [claim].flat().some((value) => /string|number|boolean/.test(typeof value) && values.includes(String(value)));
}

function requireValidTimes({ exp, iat, nbf }: z.output<typeof timeClaims>, now: Date, rules: ClaimRules): void {
  const nowSeconds = now.getTime() / 1000;
  const latestStart = nowSeconds + rules.clockSkewSeconds;
  if (exp <= nowSeconds) throw tokenExpired();
  if (iat === undefined && rules.requiresIssuedAt) throw invalidClaim("iat");
  if (iat !== undefined && iat > latestStart) throw invalidToken("The JWT was issued in the future.");
  if (nbf !== undefined && nbf > latestStart) throw notValidYet();
  if (exp > (iat ?? nowSeconds) + rules.maxLifetimeSeconds + rules.clockSkewSeconds) {
    throw invalidToken(`The lifetime of the JWT is too long. The maximum is ${rules.maxLifetimeSeconds} seconds.`);
  }
}

/*
 * Two providers may use the same `sub` for different people, so the ids of an issuer's users begin with the issuer. The
 * other provider (HS256) cannot issue a token for such an id.
 */
const prefixOf = (issuer: string) => `${issuer}#`;

/**
 * Returns the user id of a subject of an issuer with public keys: `<issuer>#<sub>`.
 * @throws ApiError `invalid_token` when the id is longer than a user id may be
 */
export function userIdOfIssuer(sub: string, issuer: string): string {
  const { success, data } = z.safeParse(userId, prefixOf(issuer) + sub);
  if (!success) throw invalidClaim("sub");
  return data;
}

/**
 * Returns the user id of a subject of the provider with the shared secret: the subject.
 * @throws ApiError `invalid_token` when it has the form of a user id of the other issuer
 */
export function userIdOfProvider(sub: string, otherIssuer: string): string {
  if (sub.startsWith(prefixOf(otherIssuer))) throw invalidClaim("sub");
  return sub;
}
