import * as z from "zod/mini";
import { MAX_PROJECTS_PER_CREDENTIAL } from "../../foundation/access/identity.ts";
import { personId } from "../../foundation/access/person-id.ts";
import { permissionSet } from "../../foundation/access/platform-permissions.ts";
import { permissions } from "../../foundation/manifest/permissions.ts";
import { rowFields, rowList } from "../../foundation/schema/import-rows.ts";
import {
  displayName,
  fields,
  isoTime,
  orRequired,
  overlapSeconds,
  setOf,
  uuid,
} from "../../foundation/schema/input.ts";
import { kindOfKey } from "./imported-keys.ts";

/* The inputs of the endpoints for keys. A module of its own: the authorizer does not load it. */

const keyFields = () => ({
  name: displayName,
  permissions: z.optional(permissionSet(permissions)),
  project_ids: z.optional(setOf(uuid, MAX_PROJECTS_PER_CREDENTIAL)),
  expires_at: z.optional(isoTime),
});

export const apiKeyInput = () => fields(keyFields());
export type ApiKeyInput = z.infer<ReturnType<typeof apiKeyInput>>;

/** Input of the platform that creates a key for a user. The result is an ordinary key of that user. */
export const provisionInput = () => fields({ user_id: personId, ...keyFields() });

/** Input of an import. */
export const importInput = fields({ keys: rowList, dry_run: z.optional(z.boolean("must be true or false")) });

const SHA_256 = /^([0-9a-f]{64}|[A-Za-z0-9+/_-]{43}=?)$/i;
const SHOWN_PREFIX = /^[A-Za-z0-9._~+/=-]{1,32}$/;
const hashRule = "must be the 32 bytes of the hash in hex or Base64";

/** A key of an earlier service. */
export const importedKeyInput = () =>
  rowFields({
    hash: z.pipe(
      z.string(orRequired(hashRule)).check(z.refine((text) => SHA_256.test(text), hashRule)),
      z.transform((text: string) =>
        text.length === 64 ? text.toLowerCase() : Buffer.from(text, "base64").toString("hex"),
      ),
    ),
    user_id: personId,
    name: displayName,
    key_prefix: z.string(orRequired("must be a string")).check(
      z.refine((text) => SHOWN_PREFIX.test(text), "must be the first characters of the key, at most 32"),
      z.refine(
        (text) => kindOfKey(text) !== undefined,
        "must begin with a prefix of the stage option importedKeys (in a local run, of the setting IMPORTED_KEYS)",
      ),
    ),
    created_at: z.optional(isoTime),
    expires_at: z.optional(isoTime),
    permissions: z.optional(permissionSet(permissions)),
  });
export type ImportedKeyInput = z.infer<ReturnType<typeof importedKeyInput>>;

/** The fields of a key that a user can change. */
export const apiKeyPatch = fields({ name: displayName });
export type ApiKeyPatch = z.infer<typeof apiKeyPatch>;

/** Input of a roll. */
export const rollInput = fields({ overlap_seconds: overlapSeconds });

/** Upper bound on the credentials of one call that ends leaked ones. */
export const MAX_REVOKED_CREDENTIALS = 100;
const credentialsRule = `must have 1 to ${MAX_REVOKED_CREDENTIALS} entries`;

/** Input of the call that revokes leaked credentials. Each text is searched for keys. */
export const leakInput = fields({
  credentials: z
    .array(z.string("must be a string"), orRequired("must be an array"))
    .check(z.minLength(1, credentialsRule), z.maxLength(MAX_REVOKED_CREDENTIALS, credentialsRule)),
});

/** Query parameters of the list of keys. */
export const listQuery = fields({ include: z.optional(z.enum(["last_use"], "must be last_use")) });
