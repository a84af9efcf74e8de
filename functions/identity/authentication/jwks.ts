import { createPublicKey, type KeyObject } from "node:crypto";
import { once } from "node:events";
import http from "node:http";
import https from "node:https";
import { FetchError, JwksValidationError, JwtBaseError, NonRetryableFetchError } from "aws-jwt-verify/error";
import type { Jwk } from "aws-jwt-verify/jwk";
import { JwtVerifierBase } from "aws-jwt-verify/jwt-verifier";
import { settings } from "../../foundation/platform/env.ts";
import { ApiError } from "../../foundation/platform/errors.ts";
import { log } from "../../foundation/platform/log.ts";
import { parseJson } from "../../foundation/platform/parse-json.ts";
import { type Jwt, KeyNotLookedUpError } from "./jwt.ts";

/*
 * Tokens of issuers that publish their keys. The keys are cached here, and not by the library, which would trust a key until the
 * process ends, although the issuer has removed it.
 */

/** Time after which the keys are fetched again: the longest that a removed key is trusted while the issuer responds. */
const REFRESH_AFTER_MS = 5 * 60_000;
/** Time for which a failed fetch is not repeated while the cached keys verify the tokens: it takes up to six seconds of a request. */
const REFRESH_BACKOFF_MS = 30_000;
/** The same for a token that needs a key which is not cached; twice the time of the failed fetch if that is longer. */
const LOOKUP_BACKOFF_MS = 2_000;
/**
 * Upper bound on the fetches in two seconds for tokens with an unknown key, because callers choose the kid. Each fetch finds all new
 * keys: a key that was published two seconds ago is found, whatever a stranger sends. Above the bound, a token with another unknown
 * key is not decided.
 */
const MAX_LOOKUPS = 3;
const LOOKUP_INTERVAL_MS = 2_000;

const anyClaims = { issuer: null, audience: null, jwksUri: "https://issuer.invalid/keys" };

/**
 * Verifies signatures with one key, which is converted once. `verifyJwtSync` of the library would reject a token for claims that this
 * service does not use, so this calls what is below it, with claims of its own.
 */
class SignatureVerifier extends JwtVerifierBase<typeof anyClaims, typeof anyClaims, false> {
  readonly #header: { alg: string; kid: string };

  /** @param algorithm the only one that the key is used for */
  constructor(jwk: Jwk, algorithm: string) {
    super(anyClaims);
    this.#header = { alg: algorithm, kid: "key" };
    this.cacheJwks({ keys: [{ ...jwk, ...this.#header }] });
  }

  hasSigned({ parts, header }: Jwt): boolean {
    const [headerB64, payloadB64, signatureB64] = parts;
    const alg = header.alg === "Ed25519" ? "EdDSA" : header.alg;
    if (alg !== this.#header.alg) return false;
    const jwt = { header: this.#header, headerB64, payload: { iss: "issuer" }, payloadB64, signatureB64 };
    try {
      this.verifyDecomposedJwtSync(jwt, anyClaims.jwksUri, anyClaims);
      return true;
    } catch (error) {
      if (error instanceof JwtBaseError || unfitSignatureCode.test((error as NodeJS.ErrnoException).code ?? ""))
        return false;
      throw error;
    }
  }
}

interface IssuerKey {
  kid: string | undefined;
  verifier: SignatureVerifier;
}

/** What is known about the keys at an address. The number of addresses is limited by the configuration. */
interface IssuerState {
  keys: IssuerKey[];
  /** When they were fetched; absent = there are none yet. */
  fetchedAt?: number;
  /** A fetch in progress, which parallel requests share. */
  fetching?: Promise<void> | undefined;
  /** The last fetch, when it failed. */
  failed?: { error: unknown; at: number; tookMs: number } | undefined;
  /** The kids of the last two seconds that the fetched keys did not have, and when they were fetched for it. */
  lookUps: { kid: unknown; at: number }[];
}

const states = new Map<string, IssuerState>();

function stateOf(uri: string): IssuerState {
  const state = states.get(uri) ?? { keys: [], lookUps: [] };
  states.set(uri, state);
  return state;
}

/** Time from the request to the last byte of the response. It is sent twice at most. */
const HTTP_TIMEOUT_MS = 3_000;
/** Limits of a response, far above the keys of any known issuer: a larger one would fill the memory and the time of requests. */
const MAX_BYTES = 256 * 1024;
const MAX_KEYS = 100;

/** Plain http is accepted in a local run only, from this machine: `isIssuerUrl`. */
async function fetchOnce(uri: string): Promise<Buffer> {
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
    return Buffer.concat(chunks);
  } catch (error) {
    throw error instanceof FetchError ? error : new FetchError(uri, error);
  } finally {
    request.destroy();
  }
}

/** @throws FetchError or JwksValidationError */
export async function downloadKeys(uri: string): Promise<IssuerKey[]> {
  const bytes = await fetchOnce(uri).catch((error) => {
    if (error instanceof NonRetryableFetchError) throw error;
    return fetchOnce(uri);
  });
  const entries: unknown = Object(parseJson(bytes.toString("utf8"))).keys;
  if (!Array.isArray(entries)) throw new JwksValidationError("Response is not a JWKS");
  if (entries.length > MAX_KEYS) throw new JwksValidationError(`Response has more than ${MAX_KEYS} keys`);
  if (entries.length > 0 && entries.every((entry) => typeof entry?.kty !== "string"))
    throw new JwksValidationError("Response has no valid keys");
  return entries.flatMap((entry) => usableKey(entry) ?? []);
}

/**
 * Returns a key that verifies signatures, or undefined for an entry that is to be ignored, because it is malformed, for another
 * purpose or algorithm, or too weak. RFC 7517 sections 4 and 5; RFC 7518 section 3.3: RSA with 2,048 bits or more.
 */
function usableKey(entry: unknown): IssuerKey | undefined {
  const { kid, use = "sig", alg, key_ops = ["verify"] } = Object(entry);
  if (use !== "sig" || !Array.isArray(key_ops) || !key_ops.includes("verify")) return undefined;
  try {
    const publicKey = createPublicKey({ key: entry as Jwk, format: "jwk" });
    const algorithm = algorithmOf(publicKey);
    const isFor = alg === undefined || alg === algorithm || (alg === "Ed25519" && algorithm === "EdDSA");
    if (algorithm === undefined || !isFor) return undefined;
    return { kid, verifier: new SignatureVerifier(publicKey.export({ format: "jwk" }) as Jwk, algorithm) };
  } catch {
    return undefined;
  }
}

function algorithmOf({ asymmetricKeyType: type, asymmetricKeyDetails: details = {} }: KeyObject): string | undefined {
  if (type === "rsa" && Number(details.modulusLength) >= 2_048) return "RS256";
  if (type === "ec" && details.namedCurve === "prime256v1") return "ES256";
  return type === "ed25519" ? "EdDSA" : undefined;
}

/** Codes of the errors that Node throws for a signature of a length or kind that does not fit the key. */
const unfitSignatureCode = /^ERR_CRYPTO_(OPERATION_FAILED|UNSUPPORTED_OPERATION)$/;

/**
 * Returns whether an issuer has signed a token. Public keys are fetched every five minutes, and when a token names an unknown key.
 * @param uri address of the keys
 * @param requireClaims throws an ApiError when the token would not be valid with any signature
 * @throws ApiError `token_expired` when the key is unknown; `service_unavailable` when it is unknown and the keys cannot be fetched, and
 * `KeyNotLookedUpError` when they are not because of the upper bound: it may be valid, or a stranger has invented the kid
 * @throws FetchError or JwksValidationError when there are no keys of the issuer yet; the token may be valid
 */
export async function isSignedByIssuer(
  uri: string,
  jwt: Jwt,
  now: Date,
  requireClaims: () => unknown,
): Promise<boolean> {
  const state = stateOf(uri);
  const { kid } = jwt.header;
  if (kid !== undefined && typeof kid !== "string") return false;
  await refreshKeys(state, uri, now);
  const isSigned = isSignedWithKeys(state, jwt);
  if (isSigned !== undefined) return isSigned;
  // Unverified, but enough to reject: a token that would not be valid with any key needs no fetch.
  if (!isAcceptable(requireClaims)) return false;
  const isLookedUp = await lookUpKeys(state, uri, kid, now);
  const isSignedWithNew = isSignedWithKeys(state, jwt);
  if (isSignedWithNew === undefined && state.failed) throw unavailable(state.failed.error);
  if (isSignedWithNew === undefined && !isLookedUp) throw new KeyNotLookedUpError();
  return isSignedWithNew ?? false;
}

/** The claims of a token whose signature is not verified are not named, but an expired one is: its key may be a removed one. */
function isAcceptable(requireClaims: () => unknown): boolean {
  try {
    requireClaims();
    return true;
  } catch (error) {
    if (error instanceof ApiError && error.code === "invalid_token") return false;
    throw error;
  }
}

const unavailable = (cause: unknown) =>
  new ApiError("service_unavailable", "The keys of the issuer of the JWT cannot be fetched. Try again.", {
    headers: { "Retry-After": "2" },
    cause,
  });

/**
 * Returns undefined when the token names a key that is not cached. A token without a kid is signed with the only key of the issuer
 * (OpenID Connect Core, section 10.1): if it is not, the key was replaced.
 */
function isSignedWithKeys({ keys }: IssuerState, jwt: Jwt): boolean | undefined {
  const { kid } = jwt.header;
  const candidates = keys.filter((key) => (kid === undefined ? keys.length === 1 : key.kid === kid));
  if (candidates.some(({ verifier }) => verifier.hasSigned(jwt))) return true;
  return candidates.length > 0 && kid !== undefined ? false : undefined;
}

/** Fetches the keys unless they were fetched in the last five minutes. They are older only if the issuer does not respond. */
async function refreshKeys(state: IssuerState, uri: string, now: Date): Promise<void> {
  if (state.fetchedAt === undefined) return fetchKeys(state, uri, now, LOOKUP_BACKOFF_MS);
  const age = now.getTime() - state.fetchedAt;
  if (age < REFRESH_AFTER_MS) return;
  try {
    await fetchKeys(state, uri, now, REFRESH_BACKOFF_MS);
  } catch (error) {
    // Serve the stale keys while the issuer does not respond, until no token is left that it signed with them before.
    if (age >= REFRESH_AFTER_MS + settings.jwtMaxLifetimeSeconds() * 1000) throw error;
  }
}

/**
 * Fetches the keys for a token that names an unknown one, within the limits. `state.failed` says whether it has failed.
 * @returns false when the keys were not fetched for this kid, because other ones have reached the limit
 */
async function lookUpKeys(state: IssuerState, uri: string, kid: unknown, now: Date): Promise<boolean> {
  const at = now.getTime();
  state.lookUps = state.lookUps.filter((lookUp) => at - lookUp.at < LOOKUP_INTERVAL_MS);
  const wasLookedUp = state.lookUps.some((lookUp) => lookUp.kid === kid);
  const isLimited = !wasLookedUp && state.lookUps.length >= MAX_LOOKUPS;
  const isFetchedForThisToken = state.fetchedAt !== undefined && state.fetchedAt >= at;
  if (!wasLookedUp && !isLimited) state.lookUps.push({ kid, at });
  else if (!state.fetching) return wasLookedUp || isFetchedForThisToken;
  if (!isFetchedForThisToken) await fetchKeys(state, uri, now, LOOKUP_BACKOFF_MS).catch(() => {});
  return !isLimited || isFetchedForThisToken;
}

async function fetchKeys(state: IssuerState, uri: string, now: Date, backoffMs: number): Promise<void> {
  const { failed } = state;
  if (failed && now.getTime() - failed.at < Math.max(backoffMs, 2 * failed.tookMs)) throw failed.error;
  state.fetching ??= replaceKeys(state, uri, now);
  return state.fetching;
}

async function replaceKeys(state: IssuerState, uri: string, now: Date): Promise<void> {
  const startedAt = performance.now();
  try {
    state.keys = await downloadKeys(uri);
    state.fetchedAt = now.getTime();
    state.failed = undefined;
  } catch (error) {
    state.failed = { error, at: now.getTime(), tookMs: performance.now() - startedAt };
    log.error("keys of the issuer could not be fetched", error);
    throw error;
  } finally {
    state.fetching = undefined;
  }
}
