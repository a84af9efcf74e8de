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

/** What the library throws when the issuer's keys cannot be had: no answer, or one that holds no keys. */
const issuerErrors = [FetchError, JwksNotAvailableInCacheError, JwksValidationError, JwkValidationError];

/** Node throws, instead of saying no, over a signature that cannot be one of the key: of another length, or for another kind. */
const unfitSignature = /^ERR_CRYPTO_(OPERATION_FAILED|UNSUPPORTED_OPERATION)$/;

/**
 * The payload of a token that the configured issuer signed, or undefined when it did not. Public keys are fetched from
 * JWKS_URI (by default `<issuer>/.well-known/jwks.json`) when a token names one that is not known yet.
 * @throws ApiError `token_expired`
 * @throws FetchError and its like when the issuer's keys cannot be had: an outage, no fault of the token
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
    if (error instanceof JwtBaseError || unfitSignature.test((error as NodeJS.ErrnoException).code ?? ""))
      return undefined;
    throw error;
  }
}
