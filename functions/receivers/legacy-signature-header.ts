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
 * Returns the header of an earlier service that deliveries carry in this stage: the setting LEGACY_SIGNATURE_HEADER. Parsed without
 * zod, which would be 17 KB more to load in every sender.
 * @returns undefined when there is none
 * @throws SettingError when it is not valid
 */
export function legacySignatureHeader(): LegacySignatureHeader | undefined {
  const text = settings.legacySignatureHeader();
  if (text === undefined) return undefined;
  const { name, until }: { name?: unknown; until?: unknown } = Object(parsed(text));
  if (!isLegacyName(name)) throw unusable(`Its name ${legacyNameRule}.`);
  if (!isLegacyUntil(until)) throw unusable(`Its until ${legacyUntilRule}.`);
  return { name, until };
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw unusable("It is not JSON.");
  }
}

const unusable = (reason: string) =>
  new SettingError(
    `LEGACY_SIGNATURE_HEADER cannot be used. ${reason} Example: {"name":"X-Acme-Signature","until":"2027-01-31"}`,
  );
