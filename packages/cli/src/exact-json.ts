/**
 * JSON that keeps numbers as they are written: what a receiver got as 9007199254740993 is not to be shown as …992.
 * @throws SyntaxError
 */
export function parseExactly(text: string): unknown {
  return JSON.parse(text, (_key, value: unknown, context?: { source?: string }) =>
    typeof value === "number" && context?.source !== undefined && String(value) !== context.source
      ? JSON.rawJSON(context.source)
      : value,
  );
}
