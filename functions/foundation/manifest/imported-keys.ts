import * as z from "zod/mini";

/** The beginnings of keys of this service, of partner keys, and of JWTs: the Base64 of `{"`. */
const reserved = ["svc_", "svcp_", "ey"];
const KEY_PREFIX = /^[A-Za-z0-9._~+/=-]{2,20}$/;
const isKeyPrefix = (text: string): boolean =>
  KEY_PREFIX.test(text) && !reserved.some((each) => each.startsWith(text) || text.startsWith(each));
const prefixRule = "must be 2 to 20 characters such as acme_, and not begin like svc_, svcp_ or a JWT (ey)";

const MAX_KINDS = 10;

/** The kinds of keys of the platform's earlier service, which this one accepts once they are imported: option and setting. */
export const keyKindList = () =>
  z
    .array(
      z.strictObject({
        /** The beginning of each key, such as `acme_`. */
        prefix: z.string(prefixRule).check(z.refine(isKeyPrefix, prefixRule)),
        /** How the whole key was hashed: by SHA-256, or by HMAC-SHA256 with a secret pepper (`importedKeysPepper`). */
        hash: z.enum(["sha256", "hmac-sha256"], "must be sha256 or hmac-sha256"),
      }),
      "must be a list",
    )
    .check(
      z.refine((kinds) => kinds.length >= 1 && kinds.length <= MAX_KINDS, `must have 1 to ${MAX_KINDS} entries`),
      z.refine(
        (kinds) =>
          kinds.every((kind) => !kinds.some((other) => other !== kind && kind.prefix.startsWith(other.prefix))),
        "must have prefixes that do not begin with one another",
      ),
    );
export type ImportedKeyKind = z.infer<ReturnType<typeof keyKindList>>[number];
