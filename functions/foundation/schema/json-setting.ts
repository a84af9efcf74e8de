import { SettingError } from "../platform/errors.ts";

/**
 * Creates a function that returns a setting that is a JSON list; empty when it is not set. Each text is parsed once: the
 * authorizer reads some settings on every request.
 * @param textOf returns the text of the setting
 * @param example a valid value, for the error
 * @param read checks a parsed value. Its error names the violated rules
 * @returns a function that throws SettingError when the setting is not valid
 */
export function jsonListSetting<Item>(
  name: string,
  textOf: () => string | undefined,
  example: string,
  read: (value: unknown) => Item[],
): () => Item[] {
  let last: { text: string; items: Item[] } | undefined;
  return () => {
    const text = textOf();
    if (text === undefined) return [];
    try {
      if (last?.text !== text) last = { text, items: read(JSON.parse(text)) };
      return last.items;
    } catch (error) {
      const reason = error instanceof SyntaxError ? "It is not JSON." : String(Object(error).message);
      throw new SettingError(`${name} cannot be used. ${reason} Example: ${example}`);
    }
  };
}
