import {
  isLegacySignatureHeader,
  type LegacySignatureHeader,
  legacySignatureHeaderRule,
} from "../../foundation/manifest/legacy-signature-header.ts";
import { settings } from "../../foundation/platform/env.ts";
import { SettingError } from "../../foundation/platform/errors.ts";
import { parseJson } from "../../foundation/platform/parse-json.ts";

/**
 * Returns the header of an earlier service that deliveries carry in this stage: the setting LEGACY_SIGNATURE_HEADER; undefined =
 * none. Parsed without zod, which would be 17 KB more to load in every sender.
 * @throws SettingError when it is not valid
 */
export function legacySignatureHeader(): LegacySignatureHeader | undefined {
  const text = settings.legacySignatureHeader();
  if (text === undefined) return undefined;
  const value = parseJson(text);
  if (isLegacySignatureHeader(value)) return value;
  throw new SettingError(`LEGACY_SIGNATURE_HEADER must be JSON, and ${legacySignatureHeaderRule}`);
}
