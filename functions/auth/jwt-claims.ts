import * as z from "zod/mini";
import { ApiError } from "../platform/errors.ts";
import { userId } from "../schema/input.ts";

/*
 * The rules for the claims of a JWT, the same for all issuers. All claims are optional in RFC 7519 and the libraries
 * accept absent claims, so each claim that this service uses is checked here.
 */

const seconds = z.number().check(z.nonnegative());

const claims = z.object({
  sub: userId,
  exp: seconds,
  iat: z.optional(seconds),
  nbf: z.optional(seconds),
});

export interface ClaimRules {
  /** Maximum time between issue (`iat`) and expiry (`exp`). */
  maxLifetimeSeconds: number;
  /** Accepted difference between the clocks of the provider and of this service. It does not extend the expiry. */
  clockSkewSeconds: number;
}

export const invalidToken = (message: string, options?: ErrorOptions) =>
  new ApiError("invalid_token", message, options);
export const tokenExpired = () => new ApiError("token_expired", "The JWT has expired. Sign in again.");

/**
 * Returns the user id in the claims of a token with a valid signature.
 * @throws ApiError `token_expired`, or `invalid_token` with the name of the claim to fix
 */
export function userIdFromClaims(payload: unknown, now: Date, rules: ClaimRules): string {
  const parsed = z.safeParse(claims, payload);
  if (!parsed.success) {
    const claim = parsed.error.issues[0]?.path[0];
    throw invalidToken(
      claim === undefined ? "The JWT has no claims." : `The ${String(claim)} claim of the JWT is missing or invalid.`,
    );
  }
  const { sub, exp, iat, nbf } = parsed.data;
  const nowSeconds = now.getTime() / 1000;
  const latestStart = nowSeconds + rules.clockSkewSeconds;
  if (exp <= nowSeconds) throw tokenExpired();
  if (iat !== undefined && iat > latestStart) throw invalidToken("The JWT was issued in the future.");
  if (nbf !== undefined && nbf > latestStart) throw invalidToken("The JWT is not valid yet.");
  if (exp > (iat ?? nowSeconds) + rules.maxLifetimeSeconds + rules.clockSkewSeconds) {
    throw invalidToken(`The lifetime of the JWT is too long. The maximum is ${rules.maxLifetimeSeconds} seconds.`);
  }
  return sub;
}
