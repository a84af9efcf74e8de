import * as z from "zod/mini";
import {
  differentPrefixesRule,
  haveDifferentPrefixes,
  type ImportedKeyKind,
  isKeyPrefix,
  keyHashes,
  keyPrefixRule,
  MAX_KEY_KINDS,
} from "../manifest/imported-keys.ts";
import { settings } from "../platform/env.ts";
import { fields, orRequired } from "../schema/input.ts";
import { parseJsonSetting } from "../schema/json-setting.ts";

/** Created when it is needed: most stages import no keys, and the authorizer loads this file. */
const kindList = () =>
  z
    .array(
      fields({
        prefix: z.string(orRequired(keyPrefixRule)).check(z.refine(isKeyPrefix, keyPrefixRule)),
        hash: z.enum(keyHashes, orRequired(`must be ${keyHashes.join(" or ")}`)),
      }),
      orRequired("must be a list"),
    )
    .check(
      z.refine((kinds) => kinds.length <= MAX_KEY_KINDS, `must have at most ${MAX_KEY_KINDS} entries`),
      z.refine(haveDifferentPrefixes, differentPrefixesRule),
    );

let parsed: { setting: string; kinds: ImportedKeyKind[] } | undefined;

/**
 * Returns the kinds of keys of an earlier service that this stage accepts: the setting IMPORTED_KEYS.
 * @throws SettingError when it is not valid
 */
export function importedKeyKinds(): ImportedKeyKind[] {
  const setting = settings.importedKeys();
  if (setting === undefined) return [];
  if (parsed?.setting !== setting) {
    const example = '[{"prefix":"acme_","hash":"sha256"}]';
    parsed = { setting, kinds: parseJsonSetting("IMPORTED_KEYS", setting, kindList(), example) };
  }
  return parsed.kinds;
}

/** Returns the kind of imported keys with whose prefix a text begins; undefined = none. */
export const kindOfKey = (text: string): ImportedKeyKind | undefined =>
  importedKeyKinds().find(({ prefix }) => text.startsWith(prefix));
