/*
 * JSON with numbers as they are written. A double cannot hold every number: 9007199254740993 would be shown as …992.
 */

declare global {
  interface JSON {
    rawJSON(text: string): unknown;
    isRawJSON(value: unknown): boolean;
  }
}

interface ExactJson {
  /** Parses JSON. @throws SyntaxError */
  parse(text: string): unknown;
  /** Prints JSON, also for values without exact numbers. */
  stringify(value: unknown, indent?: number | string): string;
  /** Whether a parsed value is a number that a double cannot hold. */
  isExactNumber(value: unknown): boolean;
}

/** Uses JSON.rawJSON, which Node has from version 21. */
export const nativeJson: ExactJson = {
  parse: (text) =>
    JSON.parse(text, (_key, value: unknown, context?: { source?: string }) =>
      typeof value === "number" && context?.source !== undefined && String(value) !== context.source
        ? JSON.rawJSON(context.source)
        : value,
    ),
  stringify: (value, indent) => JSON.stringify(value, null, indent),
  isExactNumber: (value) => JSON.isRawJSON(value),
};

/** Has its text in the same field as the result of JSON.rawJSON. */
class ExactNumber {
  readonly rawJSON: string;
  constructor(rawJSON: string) {
    this.rawJSON = rawJSON;
  }
  /** For code that prints JSON without `stringify`. */
  toJSON(): number {
    return Number(this.rawJSON);
  }
}

const STRING_OR_NUMBER = /"(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*/g;
/** Starts a string that stands for a number. Random, so that no text of others contains it. */
const MARK = `number-${crypto.randomUUID()}:`;

/** For Node 20: an exact number is a marked string between the text and JSON.parse or JSON.stringify. */
export const portableJson: ExactJson = {
  parse(text) {
    JSON.parse(text);
    const marked = text.replaceAll(STRING_OR_NUMBER, (token) =>
      token.startsWith('"') || String(Number(token)) === token ? token : `"${MARK}${token}"`,
    );
    return JSON.parse(marked, (_key, value: unknown) =>
      typeof value === "string" && value.startsWith(MARK) ? new ExactNumber(value.slice(MARK.length)) : value,
    );
  },
  stringify(value, indent) {
    const replacer = function (this: Record<string, unknown>, key: string, converted: unknown): unknown {
      const original = this[key];
      return original instanceof ExactNumber ? MARK + original.rawJSON : converted;
    };
    return JSON.stringify(value, replacer, indent).replaceAll(new RegExp(`"${MARK}([^"]*)"`, "g"), "$1");
  },
  isExactNumber: (value) => value instanceof ExactNumber,
};

export const {
  parse: parseExactly,
  stringify: stringifyExactly,
  isExactNumber,
} = "rawJSON" in JSON ? nativeJson : portableJson;
