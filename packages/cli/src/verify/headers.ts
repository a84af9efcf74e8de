/* Headers as people save and paste them. Pure. */

type Header = [name: string, value: string];

/**
 * Parses a JSON object, or text with one header per line. Skips lines that are not headers, such as the request line.
 * @returns undefined for text that starts with `{` and is not a JSON object
 */
export function parseHeaders(text: string): Header[] | undefined {
  if (text.trimStart().startsWith("{")) return parseObject(text);
  return text.split(/\r?\n/).flatMap((line) => {
    const header = parseHeader(line);
    return header ? [header] : [];
  });
}

/** @returns undefined for a line that is not a header */
export function parseHeader(line: string): Header | undefined {
  const [, name, value] = /^\s*(?:[<>] )?([\w-]+)\s*:(.*)$/.exec(line) ?? [];
  return name === undefined || value === undefined ? undefined : [name, value];
}

/** A value is an array when the header was sent more than once. */
export const entriesOf = (headers: object): Header[] =>
  Object.entries(headers).map(([name, value]) => [name, Array.isArray(value) ? value.join(", ") : String(value)]);

function parseObject(text: string): Header[] | undefined {
  try {
    return entriesOf(JSON.parse(text));
  } catch {
    return undefined;
  }
}
