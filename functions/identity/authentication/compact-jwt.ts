import { parseJson } from "../../foundation/platform/parse-json.ts";
import { invalidToken } from "./jwt-claims.ts";

/* The form of a JWT (RFC 7515, section 3.1), before its signature is verified. */

const MAX_TOKEN_BYTES = 8 * 1024;
const JWT = /^([\w-]+)\.([\w-]+)\.([\w-]+)$/;

/**
 * The types (`typ`) of tokens that sign in, in lower case and without `application/`; absent is accepted too. A provider signs other
 * tokens with the same keys: logout tokens, security events, proofs of possession. RFC 7519 section 5.1 (JWT), RFC 9068 section 2.1
 * (at+jwt), RFC 7515 section 4.1.9 (JOSE), RFC 8725 section 3.11. Which provider uses which: docs/configuration.md.
 */
const SIGN_IN_TYPES = ["jwt", "at+jwt", "id_token+jwt", "jose"];
/** What an error may name of a type: gateway responses insert the message without JSON escaping. */
const PRINTABLE_TYPE = /^[\w.+/-]{1,40}$/;

/**
 * Returns the algorithm and the key id that a token names.
 * @throws ApiError `invalid_token` for text that is not a JWT, for a JWT with a critical header, and for one of another type
 */
export function readHeader(token: string): { alg: string; kid: unknown } {
  const malformed = () => invalidToken("The token is neither an API key nor a well-formed JWT.");
  const parts = token.length <= MAX_TOKEN_BYTES && JWT.exec(token);
  if (!parts) throw malformed();
  const [, header = "", , signature = ""] = parts;
  if (!isCanonical(signature)) throw malformed();
  const fields = parseHeader(header);
  if (typeof fields?.alg !== "string") throw malformed();
  // RFC 7515, section 4.1.11: reject a token with an unsupported critical extension. No extension is supported.
  if ("crit" in fields) throw invalidToken("The JWT has a critical header that is not supported.");
  const { alg, kid, typ = "JWT" } = fields;
  if (typeof typ !== "string" || !SIGN_IN_TYPES.includes(typ.toLowerCase().replace(/^application\//, ""))) {
    const named = typeof typ === "string" && PRINTABLE_TYPE.test(typ) ? typ : "unknown";
    throw invalidToken(`The JWT has the type ${named}, which does not sign in.`);
  }
  return { alg, kid };
}

/**
 * The characters that may end base64url text, by its length modulo 4: the bits that no byte uses are 0. Text of another length is
 * never whole bytes. https://www.rfc-editor.org/rfc/rfc4648#section-3.5
 */
const CANONICAL_END = [/[\w-]$/, /^$/, /[AQgw]$/, /[AEIMQUYcgkosw048]$/];

/** Returns whether base64url text is the only one for its bytes. A signature that is not is a second form of the same token. */
const isCanonical = (base64url: string): boolean => CANONICAL_END[base64url.length % 4]?.test(base64url) ?? false;

let lastHeader: { text: string; fields: Record<string, unknown> | undefined } | undefined;

/** Parses a token header. All tokens of a provider have the same one: the cache saves 7 % of the authorizer's time. */
function parseHeader(text: string): Record<string, unknown> | undefined {
  if (lastHeader?.text !== text) lastHeader = { text, fields: parseObject(text) };
  return lastHeader.fields;
}

function parseObject(base64url: string): Record<string, unknown> | undefined {
  const value = parseJson(Buffer.from(base64url, "base64url").toString("utf8"));
  return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : undefined;
}

/** Returns the claim `iss` of a token whose signature is not verified yet; undefined = it has none. */
export function unverifiedIssuer(token: string): string | undefined {
  const issuer = claimsOf(token)?.iss;
  return typeof issuer === "string" ? issuer : undefined;
}

function claimsOf(token: string): Record<string, unknown> | undefined {
  const payload = token.length <= MAX_TOKEN_BYTES ? JWT.exec(token)?.[2] : undefined;
  return payload === undefined ? undefined : parseObject(payload);
}

/** Returns the claim `exp` of a token that is verified, as an ISO 8601 time. */
export const expiryOf = (token: string): string => new Date(Number(claimsOf(token)?.exp) * 1000).toISOString();
