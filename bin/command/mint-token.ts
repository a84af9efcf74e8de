import jwt from "jsonwebtoken";
import { hs256Key } from "../../functions/identity/authentication/hs256.ts";

export const DEFAULT_TOKEN_SECONDS = 3600;

/**
 * Signs a JWT as the identity provider would: HS256, the user id in `sub`.
 * @param expiresInSeconds negative = already expired
 */
export function mintToken(secret: string, userId: string, expiresInSeconds = DEFAULT_TOKEN_SECONDS): string {
  return jwt.sign({}, hs256Key(secret, "JWT_SECRET"), {
    algorithm: "HS256",
    subject: userId,
    expiresIn: expiresInSeconds,
  });
}
