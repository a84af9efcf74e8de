import { JwtVerifier } from "aws-jwt-verify";
import {
  FetchError,
  JwksNotAvailableInCacheError,
  JwksValidationError,
  JwkValidationError,
  JwtBaseError,
  JwtExpiredError,
} from "aws-jwt-verify/error";
import { settings } from "../platform/env.ts";
import { tokenExpired } from "./jwt-claims.ts";

type Jwks = NonNullable<ReturnType<typeof settings.jwks>>;

const verifierFor = ({ issuer, uri, audience }: Jwks) =>
  JwtVerifier.create({ issuer, audience, jwksUri: uri, graceSeconds: settings.jwtClockSkewSeconds() });

let cached: { uri: string; verifier: ReturnType<typeof verifierFor> } | undefined;

/** Errors of the library when the issuer's keys are unavailable: no response, or a response without valid keys. */
const issuerErrors = [FetchError, JwksNotAvailableInCacheError, JwksValidationError, JwkValidationError];

/** Codes of the errors that Node throws for a signature of a length or kind that does not fit the key. */
const unfitSignatureCode = /^ERR_CRYPTO_(OPERATION_FAILED|UNSUPPORTED_OPERATION)$/;

/**
 * Returns the payload of a token that is signed by the configured issuer, or undefined for any other token. Public keys
 * are fetched from JWKS_URI (by default `<issuer>/.well-known/jwks.json`) when a token names an unknown key.
 * @throws ApiError `token_expired`
 * @throws FetchError or another of `issuerErrors` when the issuer's keys are unavailable; the token may be valid
 */
export async function verifyWithJwks(token: string): Promise<unknown> {
  const jwks = settings.jwks();
  if (jwks === undefined) return undefined;
  if (cached?.uri !== jwks.uri) cached = { uri: jwks.uri, verifier: verifierFor(jwks) };
  try {
    return await cached.verifier.verify(token);
  } catch (error) {
    if (error instanceof JwtExpiredError) throw tokenExpired();
    if (issuerErrors.some((kind) => error instanceof kind)) throw error;
    if (error instanceof JwtBaseError || unfitSignatureCode.test((error as NodeJS.ErrnoException).code ?? ""))
      return undefined;
    throw error;
  }
}
