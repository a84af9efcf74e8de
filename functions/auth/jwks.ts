import { JwtVerifier } from "aws-jwt-verify";
import {
  FetchError,
  JwksValidationError,
  JwkValidationError,
  JwtBaseError,
  JwtExpiredError,
  JwtNotBeforeError,
  KidNotFoundInJwksError,
} from "aws-jwt-verify/error";
import { SimpleJwksCache } from "aws-jwt-verify/jwk";
import { decomposeUnverifiedJwt } from "aws-jwt-verify/jwt";
import { settings } from "../platform/env.ts";
import { ApiError } from "../platform/errors.ts";
import { log } from "../platform/log.ts";
import { notValidYet, tokenExpired } from "./jwt-claims.ts";

/*
 * Tokens of issuers that publish their keys. The keys are cached here, for each issuer, and not by the library, which would
 * trust a key until the process ends, although the issuer has removed it.
 */

/** Time after which the keys are fetched again: the longest that a removed key is trusted while the issuer responds. */
const REFRESH_AFTER_MS = 5 * 60_000;
/**
 * Minimum time between two fetches for tokens with unknown keys: callers choose the kid. Short, because a token may be
 * signed with a key that the issuer has just published; clients retry a 503 after a second.
 */
const MIN_LOOKUP_INTERVAL_MS = 2_000;
/** Time for which a failed fetch is not repeated, because it takes up to six seconds of a request. */
const FAILURE_BACKOFF_MS = { withKeys: 30_000, withoutKeys: 5_000 };

/** An issuer, the address of its keys, and the required audience of its tokens. */
export interface Jwks {
  issuer: string;
  uri: string;
  audience: string;
}

interface IssuerKeys {
  verifier: ReturnType<typeof verifierFor>;
  fetchedAt: number;
  /** The kids that were looked up in these keys without success. */
  missing: Set<string>;
}

/** What is known about the keys of an issuer. The number of issuers is limited by the configuration. */
interface IssuerState {
  cached?: IssuerKeys;
  /** The last fetch, when it failed. */
  failed?: { error: unknown; at: number } | undefined;
}

const states = new Map<string, IssuerState>();

function stateOf({ issuer, uri, audience }: Jwks): IssuerState {
  const source = JSON.stringify([issuer, uri, audience]);
  const state = states.get(source) ?? {};
  states.set(source, state);
  return state;
}

const HTTP_TIMEOUT_MS = 3_000;

/** Fetches over plain http, which only a local run accepts, from this machine (workflow-issuer.ts). */
async function fetchOverHttp(uri: string): Promise<ArrayBuffer> {
  try {
    const response = await fetch(uri, { redirect: "error", signal: AbortSignal.timeout(HTTP_TIMEOUT_MS) });
    if (!response.ok) throw new Error(`Status code is ${response.status}, expected 200`);
    return await response.arrayBuffer();
  } catch (error) {
    throw new FetchError(uri, error);
  }
}

/** Used for their requests only: parallel ones become one. */
const fetchers = {
  https: new SimpleJwksCache(),
  http: new SimpleJwksCache({ fetcher: { fetch: fetchOverHttp } }),
};

const verifierFor = ({ issuer, uri, audience }: Jwks) =>
  JwtVerifier.create({ issuer, audience, jwksUri: uri, graceSeconds: settings.jwtClockSkewSeconds() });

/** Errors of the library when the issuer's keys are unavailable: no response, or a response without valid keys. */
const issuerErrors = [FetchError, JwksValidationError, JwkValidationError];

/** Codes of the errors that Node throws for a signature of a length or kind that does not fit the key. */
const unfitSignatureCode = /^ERR_CRYPTO_(OPERATION_FAILED|UNSUPPORTED_OPERATION)$/;

/**
 * Returns the payload of a token that is signed by an issuer, or undefined for any other token. Public keys are fetched
 * every five minutes, and when a token names an unknown key.
 * @throws ApiError `token_expired`; `invalid_token` before its `nbf`; or `service_unavailable` when the token names an unknown key, too soon after another
 *   such token for another fetch
 * @throws FetchError or another of `issuerErrors` when the issuer's keys are unavailable; the token may be valid
 */
export async function verifyWithJwks(jwks: Jwks, token: string, now: Date): Promise<unknown> {
  try {
    return verify(token, await currentKeys(jwks, now)) ?? verify(token, await keysForUnknownKid(jwks, token, now));
  } catch (error) {
    if (error instanceof JwtExpiredError) throw tokenExpired();
    if (error instanceof JwtNotBeforeError) throw notValidYet();
    if (issuerErrors.some((kind) => error instanceof kind)) throw error;
    if (error instanceof JwtBaseError || unfitSignatureCode.test((error as NodeJS.ErrnoException).code ?? ""))
      return undefined;
    throw error;
  }
}

/** Returns the payload, or undefined when the token names a key that is not one of these. */
function verify(token: string, keys: IssuerKeys | undefined): unknown {
  try {
    return keys?.verifier.verifySync(token);
  } catch (error) {
    if (error instanceof KidNotFoundInJwksError) return undefined;
    throw error;
  }
}

/** Returns the keys to verify with, fetched at most five minutes ago unless the issuer does not respond. */
async function currentKeys(jwks: Jwks, now: Date): Promise<IssuerKeys> {
  const { cached } = stateOf(jwks);
  if (cached === undefined) return fetchKeys(jwks, now);
  const age = now.getTime() - cached.fetchedAt;
  if (age < REFRESH_AFTER_MS) return cached;
  try {
    return await fetchKeys(jwks, now);
  } catch (error) {
    // Serve the stale keys while the issuer does not respond, until no token is left that it signed with them before.
    if (age >= REFRESH_AFTER_MS + settings.jwtMaxLifetimeSeconds() * 1000) throw error;
    return cached;
  }
}

/**
 * Returns newly fetched keys for a token that names an unknown key; undefined = the issuer does not have the key either.
 * @throws ApiError `service_unavailable` too soon after a fetch for another token whose key is unknown
 */
async function keysForUnknownKid(jwks: Jwks, token: string, now: Date): Promise<IssuerKeys | undefined> {
  const { header, payload } = decomposeUnverifiedJwt(token);
  // Unverified, but enough to reject: a token of another issuer needs no fetch.
  if (payload.iss !== jwks.issuer) return undefined;
  const kid = String(header.kid);
  const { cached } = stateOf(jwks);
  if (cached !== undefined) {
    const isFetchedForThisToken = cached.fetchedAt >= now.getTime();
    if (isFetchedForThisToken) cached.missing.add(kid);
    const isLookupRecent = cached.missing.size > 0 && now.getTime() - cached.fetchedAt < MIN_LOOKUP_INTERVAL_MS;
    if (isLookupRecent && cached.missing.has(kid)) return undefined;
    if (isLookupRecent) {
      throw new ApiError("service_unavailable", "The key of the JWT cannot be looked up at the moment. Try again.");
    }
  }
  const keys = await fetchKeys(jwks, now);
  if (verify(token, keys) === undefined) keys.missing.add(kid);
  return keys;
}

async function fetchKeys(jwks: Jwks, now: Date): Promise<IssuerKeys> {
  const state = stateOf(jwks);
  const backoff = FAILURE_BACKOFF_MS[state.cached ? "withKeys" : "withoutKeys"];
  if (state.failed && now.getTime() - state.failed.at < backoff) throw state.failed.error;
  try {
    const published = await fetchers[jwks.uri.startsWith("http:") ? "http" : "https"].getJwks(jwks.uri);
    const verifier = verifierFor(jwks);
    verifier.cacheJwks(published);
    state.cached = { verifier, fetchedAt: now.getTime(), missing: new Set() };
    state.failed = undefined;
    return state.cached;
  } catch (error) {
    state.failed = { error, at: now.getTime() };
    log.error("keys of the issuer could not be fetched", error);
    throw error;
  }
}
