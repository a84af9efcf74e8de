import * as z from "zod/mini";
import { reservedUserIds } from "../../foundation/access/identity.ts";
import type { RequiredClaims } from "../../foundation/manifest/sign-in-rules.ts";
import { ApiError } from "../../foundation/platform/errors.ts";
import { parseJson } from "../../foundation/platform/parse-json.ts";
import { userId } from "../../foundation/schema/input.ts";

/* JWTs: their form (RFC 7515, section 3.1), before the signature is verified, and the rules for their claims after it. */

export type Claims = Record<string, unknown>;

/** A text with the form of a JWT, parsed once. Nothing of it is verified. */
export interface Jwt {
  token: string;
  /** Header, payload and signature in base64url. */
  parts: [string, string, string];
  header: { alg: string; kid?: unknown; typ?: unknown; crit?: unknown };
  claims: Claims;
}

const MAX_TOKEN_BYTES = 8 * 1024;
const JWT = /^([\w-]+)\.([\w-]+)\.([\w-]+)$/;

/** Returns undefined for a text that is not a JWT, such as an API key, and for one above the limit. */
export function parseJwt(token: string): Jwt | undefined {
  const found = token.length <= MAX_TOKEN_BYTES && JWT.exec(token);
  if (!found) return undefined;
  const [, encoded = "", payload = "", signature = ""] = found;
  const [header, claims] = [parseHeader(encoded), parseObject(payload)];
  if (typeof header?.alg !== "string" || claims === undefined || !isCanonical(signature)) return undefined;
  return { token, parts: [encoded, payload, signature], header: { ...header, alg: header.alg }, claims };
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
export function requireSignInHeader(token: string, jwt: Jwt | undefined): Jwt {
  if (token.length > MAX_TOKEN_BYTES) {
    throw invalidToken(
      `The token has ${token.length} bytes, and the maximum is ${MAX_TOKEN_BYTES}. The identity provider can leave claims out, such as groups.`,
    );
  }
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

/** Returns undefined for text that is not a JSON object: RFC 7519, section 7.2. */
function parseObject(base64url: string): Record<string, unknown> | undefined {
  const value = parseJson(Buffer.from(base64url, "base64url").toString("utf8"));
  return Object(value) === value && !Array.isArray(value) ? (value as Record<string, unknown>) : undefined;
}

/** Returns the claim `exp` of a token that is verified, as an ISO 8601 time. */
export const expiryOf = (token: string): string => new Date(Number(parseJwt(token)?.claims.exp) * 1000).toISOString();

/*
 * The rules for the claims of a JWT, the same for all issuers. The libraries verify signatures only: they reject claims that this
 * service does not use, such as a `scope` that is a list, and accept absent ones. So each claim that it uses is checked here.
 */

const seconds = z.number().check(z.nonnegative());

const times = { exp: seconds, iat: z.optional(seconds), nbf: z.optional(seconds) };
const timeClaims = z.object(times);
const signInClaims = z.object({ sub: userId, ...times });

export interface ClaimRules {
  /** Required `iss`; absent = any. */
  issuer?: string | undefined;
  /** A token must name one of them as its audience; absent = any. */
  audiences?: string[] | undefined;
  /** The claim with the audience of a token that has no `aud`; absent = such a token is rejected. */
  audienceClaim?: string | undefined;
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
const rejectedClaims: [claim: string, values: string[]][] = [
  ["is_anonymous", ["true"]],
  ["role", ["anon", "service_role"]],
  ["firebase.sign_in_provider", ["anonymous"]],
  ["typ", ["Refresh", "Offline", "Logout"]],
  ["token_use", ["refresh"]],
  ["token_type", ["refresh", "refresh_token"]],
  ["type", ["refresh"]],
];

export const invalidToken = (message: string) => new ApiError("invalid_token", message);

/**
 * A claim of a token with a valid signature is not accepted. The values are for the log only: gateway responses insert the message
 * without JSON escaping.
 */
export class ClaimError extends ApiError {
  readonly claim: string;
  readonly values: { expected: unknown; received: unknown };

  constructor(
    claim: string,
    values: ClaimError["values"],
    message = `The ${claim} claim of the JWT is missing or invalid.`,
  ) {
    super("invalid_token", message);
    this.claim = claim;
    this.values = values;
  }
}

const subRule = "A user id has up to 255 printable characters, without backslashes and double quotes.";
const invalidSub = (received: unknown, expected: string) =>
  new ClaimError("sub", { expected, received }, `The sub claim of the JWT is missing or invalid. ${subRule}`);

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
 * @throws ApiError `token_expired`; ClaimError
 */
export function subjectFromClaims(claims: Claims, now: Date, rules: ClaimRules): string {
  requireOrigin(claims, rules);
  const { sub, ...times } = parseClaims(signInClaims, claims);
  requireValues(claims, rules.requiredClaims);
  const reserved = Object.values(reservedUserIds).find((prefix) => sub.startsWith(prefix));
  if (reserved) throw invalidSub(sub, `no id that begins with ${reserved}`);
  requireValidTimes(times, now, rules);
  return sub;
}

/**
 * Checks the claims of a token of a workflow with a valid signature.
 * @throws ApiError `token_expired`; ClaimError
 */
export function requireWorkflowClaims(claims: Claims, now: Date, rules: ClaimRules): void {
  requireOrigin(claims, rules);
  const times = parseClaims(timeClaims, claims);
  requireValues(claims);
  requireValidTimes(times, now, rules);
}

function requireOrigin(claims: Claims, { issuer, audiences, audienceClaim = "aud" }: ClaimRules): void {
  const { iss } = claims;
  const accepted: unknown[] | undefined = audiences;
  const advice = "than this service accepts. Compare them character by character: a slash at the end counts.";
  if (issuer !== undefined && iss !== issuer)
    throw new ClaimError("iss", { expected: issuer, received: iss }, `The JWT has another issuer (iss) ${advice}`);
  const name = claims.aud === undefined ? audienceClaim : "aud";
  const received = claims[name];
  if (accepted && !(Array.isArray(received) ? received : [received]).some((each) => accepted.includes(each)))
    throw new ClaimError(name, { expected: audiences, received }, `The JWT has another audience (${name}) ${advice}`);
}

function parseClaims<Schema extends z.ZodMiniType>(schema: Schema, claims: Claims): z.output<Schema> {
  const parsed = z.safeParse(schema, claims);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  const [name, expected] = [String(issue?.path[0]), issue?.message ?? ""];
  const received = claims[name];
  throw name === "sub" ? invalidSub(received, expected) : new ClaimError(name, { expected, received });
}

/**
 * Rejects a token of another kind, and one without a required claim. Logout tokens and security events have the claim `events`:
 * https://openid.net/specs/openid-connect-backchannel-1_0.html#LogoutToken, RFC 8417 section 2.2.
 */
function requireValues(claims: Claims, required: RequiredValues = []): void {
  const isRequired = (name: string) => required.some(([other]) => other === name);
  const [claim, expected] =
    required.find(([name, accepted]) => !hasValue(claims, name, [accepted].flat().map(String))) ??
    rejectedClaims.find(([name, values]) => hasValue(claims, name, values) && !isRequired(name)) ??
    (Object.hasOwn(claims, "events") ? ["events"] : []);
  if (claim === undefined) return;
  const values = {
    expected: isRequired(claim) ? expected : "another kind of token",
    received: claimValue(claims, claim),
  };
  throw new ClaimError(claim, values, `The JWT does not sign in: see its claim ${claim}.`);
}

/** Returns the value of a claim. A name with dots may be that of a claim in another one. */
function claimValue(claims: Claims, name: string): unknown {
  const own = (from: unknown, key: string): unknown =>
    Object.hasOwn(Object(from), key) ? Object(from)[key] : undefined;
  return own(claims, name) ?? (name.includes(".") ? name.split(".").reduce(own, claims as unknown) : undefined);
}

/** Returns whether a claim has one of the values, or is a list with one of them. Some providers send `true` as text. */
function hasValue(claims: Claims, name: string, values: string[]): boolean {
  const claim = claimValue(claims, name);
  const isOne = (value: unknown) => value !== null && Object(value) !== value && values.includes(String(value));
  return Array.isArray(claim) ? claim.some(isOne) : claim !== undefined && isOne(claim);
}

function requireValidTimes({ exp, iat, nbf }: z.output<typeof timeClaims>, now: Date, rules: ClaimRules): void {
  const { clockSkewSeconds, maxLifetimeSeconds } = rules;
  const nowSeconds = now.getTime() / 1000;
  const latestStart = nowSeconds + clockSkewSeconds;
  if (exp <= nowSeconds) throw tokenExpired();
  if (iat === undefined && rules.requiresIssuedAt) throw new ClaimError("iat", { expected: "a time", received: iat });
  const inFuture = { expected: `at most ${latestStart}`, received: iat };
  if (iat !== undefined && iat > latestStart)
    throw new ClaimError("iat", inFuture, "The JWT was issued in the future.");
  if (nbf !== undefined && nbf > latestStart)
    throw new ClaimError("nbf", { ...inFuture, received: nbf }, "The JWT is not valid yet.");
  // Both times of one token are of one clock. Without `iat`, the lifetime is measured with ours.
  const latestEnd = iat === undefined ? latestStart + maxLifetimeSeconds : iat + maxLifetimeSeconds;
  if (exp > latestEnd) {
    const message = `The lifetime of the JWT is too long. The maximum is ${maxLifetimeSeconds} seconds.`;
    throw new ClaimError("exp", { expected: `at most ${latestEnd}`, received: exp }, message);
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
  if (!success) throw invalidSub(sub, `with ${prefixOf(issuer)} up to 255 characters`);
  return data;
}

/**
 * Returns the user id of a subject of the provider with the shared secret: the subject.
 * @throws ApiError `invalid_token` when it has the form of a user id of the other issuer
 */
export function userIdOfProvider(sub: string, otherIssuer: string): string {
  if (sub.startsWith(prefixOf(otherIssuer))) throw invalidSub(sub, `no id that begins with ${prefixOf(otherIssuer)}`);
  return sub;
}
