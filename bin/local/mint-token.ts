import jwt from "jsonwebtoken";

export const DEFAULT_TOKEN_SECONDS = 3600;

/** A JWT as the identity provider would issue it: HS256, the user id in `sub`. */
export function mintToken(secret: string, userId: string, expiresInSeconds = DEFAULT_TOKEN_SECONDS): string {
  return jwt.sign({}, secret, { algorithm: "HS256", subject: userId, expiresIn: expiresInSeconds });
}
