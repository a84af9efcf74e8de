import { type ImportedKeyKind, keyKindList } from "../manifest/imported-keys.ts";
import { settings } from "../platform/env.ts";
import { parseJsonSetting } from "../schema/json-setting.ts";

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
    parsed = { setting, kinds: parseJsonSetting("IMPORTED_KEYS", setting, keyKindList(), example) };
  }
  return parsed.kinds;
}

/** Returns the kind of imported keys with whose prefix a text begins; undefined = none. */
export const kindOfKey = (text: string): ImportedKeyKind | undefined =>
  importedKeyKinds().find(({ prefix }) => text.startsWith(prefix));
