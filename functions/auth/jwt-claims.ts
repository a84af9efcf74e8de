import * as z from "zod/mini";
import { ApiError } from "../platform/errors.ts";
import { userId } from "../schema/input.ts";

/*
 * What a JWT must say, whoever signed it. Claims are data from outside: RFC 7519 makes all of them optional and the
 * verifying libraries accept what is absent, so each that we rely on is checked here.
 */

const seconds = z.number().check(z.nonnegative());

const claims = z.object({
  sub: userId,
  exp: seconds,
  iat: z.optional(seconds),
  nbf: z.optional(seconds),
});

export interface ClaimRules {
  /** Longest time from issue to expiry. */
  maxLifetimeSeconds: number;
  /** How far the provider's clock and ours may be apart. It never prolongs a token. */
  clockSkewSeconds: number;
}

export const invalidToken = (message: string, options?: ErrorOptions) =>
  new ApiError("invalid_token", message, options);
export const tokenExpired = () => new ApiError("token_expired", "The JWT has expired. Sign in again.");

/**
 * The user id in the claims of a token whose signature holds.
 * @throws ApiError `token_expired`, or `invalid_token` with the claim to mend
 */
export function userIdFromClaims(payload: unknown, now: Date, rules: ClaimRules): string {
  const parsed = z.safeParse(claims, payload);
  if (!parsed.success) {
    const claim = parsed.error.issues[0]?.path[0];
    throw invalidToken(
      claim === undefined ? "The JWT has no claims." : `The JWT has no usable ${String(claim)} claim.`,
    );
  }
  const { sub, exp, iat, nbf } = parsed.data;
  const nowSeconds = now.getTime() / 1000;
  const latestStart = nowSeconds + rules.clockSkewSeconds;
  if (exp <= nowSeconds) throw tokenExpired();
  if (iat !== undefined && iat > latestStart) throw invalidToken("The JWT was issued in the future.");
  if (nbf !== undefined && nbf > latestStart) throw invalidToken("The JWT is not valid yet.");
  if (exp > (iat ?? nowSeconds) + rules.maxLifetimeSeconds + rules.clockSkewSeconds) {
    throw invalidToken(`The JWT lives too long. At most ${rules.maxLifetimeSeconds} seconds are accepted.`);
  }
  return sub;
}
