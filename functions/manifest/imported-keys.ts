/**
 * How the platform's earlier service hashed its keys: SHA-256 of the whole key, or HMAC-SHA256 of it with a secret pepper.
 */
export const keyHashes = ["sha256", "hmac-sha256"] as const;

/** One kind of keys of the platform's earlier service, which this one accepts once they are imported. */
export interface ImportedKeyKind {
  /** The beginning of each key of this kind. */
  prefix: string;
  hash: (typeof keyHashes)[number];
}

export const MAX_KEY_KINDS = 10;

/** The beginnings of keys of this service, of partner keys, and of JWTs: the Base64 of `{"`. */
const reserved = ["svc_", "svcp_", "ey"];
const KEY_PREFIX = /^[A-Za-z0-9._~+/=-]{2,20}$/;
export const keyPrefixRule = "must be 2 to 20 characters such as acme_, and not begin like svc_, svcp_ or a JWT (ey)";

/** Returns whether keys of an earlier service may begin with a text. */
export const isKeyPrefix = (text: string): boolean =>
  KEY_PREFIX.test(text) && !reserved.some((each) => each.startsWith(text) || text.startsWith(each));

export const differentPrefixesRule = "must have prefixes that do not begin with one another";
export const haveDifferentPrefixes = (kinds: ImportedKeyKind[]): boolean =>
  kinds.every((kind) => !kinds.some((other) => other !== kind && kind.prefix.startsWith(other.prefix)));
