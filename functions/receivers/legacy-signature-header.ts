import {
  isLegacyName,
  isLegacyUntil,
  type LegacySignatureHeader,
  legacyNameRule,
  legacyUntilRule,
} from "../manifest/legacy-signature-header.ts";
import { settings } from "../platform/env.ts";
import { SettingError } from "../platform/errors.ts";

/**
 * Returns the header of an earlier service that deliveries carry in this stage: the setting LEGACY_SIGNATURE_HEADER; undefined =
 * none. Parsed without zod, which would be 17 KB more to load in every sender.
 * @throws SettingError when it is not valid
 */
export function legacySignatureHeader(): LegacySignatureHeader | undefined {
  const text = settings.legacySignatureHeader();
  if (text === undefined) return undefined;
  const { name, until }: { name?: unknown; until?: unknown } = Object(parsed(text));
  if (isLegacyName(name) && isLegacyUntil(until)) return { name, until };
  const rules = `Its name ${legacyNameRule}. Its until ${legacyUntilRule}.`;
  throw new SettingError(`LEGACY_SIGNATURE_HEADER must be JSON such as {"name":"…","until":"…"}. ${rules}`);
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
