import { once } from "node:events";
import http from "node:http";
import https from "node:https";
import { JwtVerifier } from "aws-jwt-verify";
import {
  FetchError,
  JwksValidationError,
  JwkValidationError,
  JwtBaseError,
  JwtExpiredError,
  JwtNotBeforeError,
  KidNotFoundInJwksError,
  NonRetryableFetchError,
} from "aws-jwt-verify/error";
import { SimpleJwksCache } from "aws-jwt-verify/jwk";
import { decomposeUnverifiedJwt } from "aws-jwt-verify/jwt";
import { settings } from "../platform/env.ts";
import { log } from "../platform/log.ts";
import { notValidYet, tokenExpired } from "./jwt-claims.ts";

/*
 * Tokens of issuers that publish their keys. The keys are cached here, for each issuer, and not by the library, which would
 * trust a key until the process ends, although the issuer has removed it. A `JwksCache` of our own could not prevent that:
 * the library would keep a key that was replaced under its kid. Only `cacheJwks` makes it forget.
 */

/** Time after which the keys are fetched again: the longest that a removed key is trusted while the issuer responds. */
const REFRESH_AFTER_MS = 5 * 60_000;
/**
 * Minimum time between two fetches for tokens with unknown keys: callers choose the kid. In between, an unknown key is one
 * that the issuer had not published two seconds ago: the token is invalid.
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

/** What is known about the keys of an issuer. The number of issuers is limited by the configuration. */
interface IssuerState {
  uri: string;
  /** Holds the keys of the last fetch. */
  verifier: ReturnType<typeof verifierFor>;
  /** When they were fetched; absent = there are none yet. */
  fetchedAt?: number;
  /** When newly fetched keys were last searched for an unknown kid; absent = never. */
  lookedUpAt?: number;
  /** The last fetch, when it failed. */
  failed?: { error: unknown; at: number } | undefined;
}

const states = new Map<string, IssuerState>();

function stateOf(jwks: Jwks): IssuerState {
  const { issuer, uri, audience } = jwks;
  const source = JSON.stringify([issuer, uri, audience]);
  const state = states.get(source) ?? { uri, verifier: verifierFor(jwks) };
  states.set(source, state);
  return state;
}

/** Time from the request to the last byte of the response. It is sent twice at most. */
const HTTP_TIMEOUT_MS = 3_000;
/** Limits of a response, far above the keys of any known issuer: a larger one would fill the memory and the time of requests. */
const MAX_BYTES = 256 * 1024;
const MAX_KEYS = 100;

/** Plain http is accepted in a local run only, from this machine (workflow-issuer.ts). */
async function fetchOnce(uri: string): Promise<ArrayBuffer> {
  const { get } = uri.startsWith("http:") ? http : https;
  const request = get(uri, { signal: AbortSignal.timeout(HTTP_TIMEOUT_MS) });
  try {
    const [response]: http.IncomingMessage[] = await once(request, "response");
    if (response?.statusCode !== 200)
      throw new NonRetryableFetchError(uri, `Status code is ${response?.statusCode}, expected 200`);
    const chunks: Buffer[] = [];
    let bytes = 0;
    for await (const chunk of response) {
      bytes += chunk.length;
      if (bytes > MAX_BYTES) throw new NonRetryableFetchError(uri, `Response has more than ${MAX_BYTES} bytes`);
      chunks.push(chunk);
    }
    return new Uint8Array(Buffer.concat(chunks)).buffer;
  } catch (error) {
    throw error instanceof FetchError ? error : new FetchError(uri, error);
  } finally {
    request.destroy();
  }
}

const fetcher = {
  fetch: (uri: string) =>
    fetchOnce(uri).catch((error) => {
      if (error instanceof NonRetryableFetchError) throw error;
      return fetchOnce(uri);
    }),
};

/** Used for its requests only: parallel ones become one. */
const downloads = new SimpleJwksCache({ fetcher });

const verifierFor = ({ issuer, uri, audience }: Jwks) =>
  JwtVerifier.create({ issuer, audience, jwksUri: uri, graceSeconds: settings.jwtClockSkewSeconds() });

/** Errors when the issuer's keys are unavailable: no response, or one without valid keys or above a limit. */
const issuerErrors = [FetchError, JwksValidationError, JwkValidationError];

/** Codes of the errors that Node throws for a signature of a length or kind that does not fit the key. */
const unfitSignatureCode = /^ERR_CRYPTO_(OPERATION_FAILED|UNSUPPORTED_OPERATION)$/;

/**
 * Returns the payload of a token that is signed by an issuer, or undefined for any other token. Public keys are fetched
 * every five minutes, and when a token names an unknown key.
 * @throws ApiError `token_expired`; `invalid_token` before its `nbf`
 * @throws FetchError or another of `issuerErrors` when the issuer's keys are unavailable; the token may be valid
 */
export async function verifyWithJwks(jwks: Jwks, token: string, now: Date): Promise<unknown> {
  const state = stateOf(jwks);
  try {
    await refreshKeys(state, now);
    const payload = verify(state, token);
    if (payload !== undefined) return payload;
    await lookUpUnknownKid(state, jwks, token, now);
    return verify(state, token);
  } catch (error) {
    if (error instanceof JwtExpiredError) throw tokenExpired();
    if (error instanceof JwtNotBeforeError) throw notValidYet();
    if (issuerErrors.some((kind) => error instanceof kind)) throw error;
    if (error instanceof JwtBaseError || unfitSignatureCode.test((error as NodeJS.ErrnoException).code ?? ""))
      return undefined;
    throw error;
  }
}

/** Returns the payload, or undefined when the token names a key that is not cached. */
function verify({ verifier }: IssuerState, token: string): unknown {
  try {
    return verifier.verifySync(token);
  } catch (error) {
    if (error instanceof KidNotFoundInJwksError) return undefined;
    throw error;
  }
}

/** Fetches the keys unless they were fetched in the last five minutes. They are older only if the issuer does not respond. */
async function refreshKeys(state: IssuerState, now: Date): Promise<void> {
  if (state.fetchedAt === undefined) return fetchKeys(state, now);
  const age = now.getTime() - state.fetchedAt;
  if (age < REFRESH_AFTER_MS) return;
  try {
    await fetchKeys(state, now);
  } catch (error) {
    // Serve the stale keys while the issuer does not respond, until no token is left that it signed with them before.
    if (age >= REFRESH_AFTER_MS + settings.jwtMaxLifetimeSeconds() * 1000) throw error;
  }
}

/**
 * Fetches the keys for a token that names an unknown one, unless the issuer did not have it at most two seconds ago. Does not
 * throw while the issuer does not respond: anyone can invent a kid, so it must not become an error of this service. A token that
 * is signed with a new key is then rejected until the issuer responds.
 */
async function lookUpUnknownKid(state: IssuerState, { issuer }: Jwks, token: string, now: Date): Promise<void> {
  // Unverified, but enough to reject: a token of another issuer needs no fetch.
  if (decomposeUnverifiedJwt(token).payload.iss !== issuer) return;
  const { fetchedAt = 0, lookedUpAt = 0 } = state;
  if (now.getTime() - lookedUpAt < MIN_LOOKUP_INTERVAL_MS) return;
  const isFetchedForThisToken = fetchedAt >= now.getTime();
  if (!isFetchedForThisToken) await fetchKeys(state, now).catch(() => {});
  state.lookedUpAt = now.getTime();
}

async function fetchKeys(state: IssuerState, now: Date): Promise<void> {
  const backoff = FAILURE_BACKOFF_MS[state.fetchedAt === undefined ? "withoutKeys" : "withKeys"];
  if (state.failed && now.getTime() - state.failed.at < backoff) throw state.failed.error;
  try {
    const published = await downloads.getJwks(state.uri);
    if (published.keys.length > MAX_KEYS) throw new JwksValidationError(`Response has more than ${MAX_KEYS} keys`);
    state.verifier.cacheJwks(published);
    state.fetchedAt = now.getTime();
    state.failed = undefined;
  } catch (error) {
    state.failed = { error, at: now.getTime() };
    log.error("keys of the issuer could not be fetched", error);
    throw error;
  }
}
