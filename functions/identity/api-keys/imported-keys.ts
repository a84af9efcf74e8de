import { type ImportedKeyKind, keyKindList } from "../../foundation/manifest/imported-keys.ts";
import { settings } from "../../foundation/platform/env.ts";
import { parse } from "../../foundation/schema/input.ts";
import { jsonListSetting } from "../../foundation/schema/json-setting.ts";

/** Returns the kinds of keys of an earlier service that this stage accepts. */
export const importedKeyKinds = jsonListSetting(
  "IMPORTED_KEYS",
  settings.importedKeys,
  '[{"prefix":"acme_","hash":"sha256"}]',
  (value) => parse(keyKindList(), value),
);

/** Returns the kind of imported keys with whose prefix a text begins; undefined = none. */
export const kindOfKey = (text: string): ImportedKeyKind | undefined =>
  importedKeyKinds().find(({ prefix }) => text.startsWith(prefix));
