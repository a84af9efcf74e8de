import { note, printable, type Style, styled } from "../terminal/terminal.ts";

/* Tables and times for a person to read. */

// Characters that are two columns wide. U+FE0F makes an emoji of the one before it: ❤️.
const WIDE =
  /\p{Emoji_Presentation}|\ufe0f|[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6]|[\u{20000}-\u{3fffd}]/u;
const graphemes = new Intl.Segmenter();
// Most texts. Finding their graphemes takes most of the time and memory of a long table.
const ASCII = /^[ -~]*$/;

/** The width of a text on a terminal, in columns. */
export const widthOf = (text: string): number =>
  ASCII.test(text)
    ? text.length
    : [...graphemes.segment(text)].reduce((sum, { segment }) => sum + (WIDE.test(segment) ? 2 : 1), 0);

export interface Cell {
  text: string;
  /** What a terminal shows instead. */
  short?: string;
  style?: Style;
}

/** The last part of an id: of the deliveries of one event, the first parts are equal. */
export const shortId = (id: string): string => id.slice(-12);

/** A terminal shows the short id, which commands accept. */
export const idCell = (id: string): Cell => ({ text: id, short: shortId(id) });

/** No column is shortened below this width, in columns of the terminal. Event names, states and times are shorter. */
const MIN_SHORTENED_WIDTH = 20;
const GAP = "  ";

/**
 * Formats an aligned table. Escapes what would act on the terminal.
 * A table that is wider than the terminal is fitted: the widest cells are shortened with …, and if that is not enough, the
 * last columns are left out, which is noted on stderr. The first column stays whole.
 * @param width the width of the terminal in columns; undefined: no limit. Default: that of stdout, if it is a terminal
 */
export function table(
  titles: string[],
  cells: (string | Cell)[][],
  width = terminalWidth(),
  minShortened = MIN_SHORTENED_WIDTH,
): string {
  const head = titles.map((text): Cell => ({ text: text.toUpperCase(), style: "dim" }));
  const rows = [head, ...cells.map((row) => row.map((cell) => toCell(cell, width !== undefined)))];
  // One argument per row would be too many for a call, from about 120,000 on.
  const widest = (column: number) => rows.reduce((max, row) => Math.max(max, widthOf(row[column]?.text ?? "")), 0);
  const natural = titles.map((_, column) => widest(column));
  const widths = width === undefined ? natural : fitWidths(natural, width, minShortened);
  const hidden = titles.slice(widths.length);
  if (hidden.length > 0) note(`Not shown on a terminal of ${width} columns: ${hidden.join(", ")}. --json has all.`);
  return rows.map((row) => line(row.slice(0, widths.length), widths)).join("\n");
}

/** A column: its title, the cell of an item, and whether the column is shown; default: it is. */
type Column<Item> = [title: string, cell: (item: Item) => string | Cell, isShown?: boolean];

/**
 * Formats items as a table. Put the most important columns first: a terminal with few columns does not show the last ones.
 * @param minShortened the width below which no column is shortened
 */
export function tableOf<Item>(items: Item[], columns: Column<Item>[], minShortened?: number): string {
  const shown = columns.filter(([, , isShown = true]) => isShown);
  const titles = shown.map(([title]) => title);
  return table(
    titles,
    items.map((item) => shown.map(([, cell]) => cell(item))),
    terminalWidth(),
    minShortened,
  );
}

/** @returns undefined when stdout is not a terminal, or does not know its width */
export const terminalWidth = (): number | undefined => process.stdout.columns || undefined;

/**
 * Fits the columns of a table. Shortens the widest ones first, the first column never.
 * @param natural the width of each column with its whole text
 * @returns the width of each column; has fewer columns if the last ones do not fit
 */
export function fitWidths(natural: number[], width: number, min = MIN_SHORTENED_WIDTH): number[] {
  const [first = 0, ...others] = natural;
  const available = width - first - GAP.length * others.length;
  const sumAt = (limit: number) => others.reduce((sum, each) => sum + Math.min(each, limit), 0);
  if (sumAt(min) > available && others.length > 0) return fitWidths(natural.slice(0, -1), width, min);
  let limit = Math.max(min, ...others);
  while (limit > min && sumAt(limit) > available) limit--;
  return [first, ...others.map((each) => Math.min(each, limit))];
}

/** Shortens a text to a width, in columns. The end of a shortened text is …. */
export function shorten(text: string, width: number): string {
  if (widthOf(text) <= width) return text;
  let shortened = "";
  let used = 1;
  for (const { segment } of graphemes.segment(text)) {
    used += widthOf(segment);
    if (used > width) break;
    shortened += segment;
  }
  return `${shortened}…`;
}

/** Shortens a URL in its middle: its end often tells it from others. */
export const withoutMiddle = (url: string, width = 40): string =>
  url.length <= width ? url : `${url.slice(0, width - 13)}…${url.slice(-12)}`;

function toCell(cell: string | Cell, isShort = false): Cell {
  const { text, short = text, style } = typeof cell === "string" ? { text: cell } : cell;
  return { text: printable(isShort ? short : text), ...(style && { style }) };
}

function line(row: Cell[], widths: number[]): string {
  const last = row.length - 1;
  return row
    .map(({ text, style }, column) => {
      const width = widths[column] ?? 0;
      const shown = shorten(text, width);
      const padding = column === last ? "" : " ".repeat(width - widthOf(shown));
      return (style ? styled(style, shown) : shown) + padding;
    })
    .join(GAP)
    .trimEnd();
}

/** Formats one line per name and value. Leaves out lines without a value. */
export function facts(rows: [name: string, value: string | Cell | undefined][]): string {
  const shown = rows.filter((row): row is [string, string | Cell] => row[1] !== undefined);
  const width = Math.max(...shown.map(([name]) => widthOf(name)));
  return shown
    .map(([name, value]) => {
      const { text, style } = toCell(value);
      return `${styled("dim", name.padEnd(width))}  ${style ? styled(style, text) : text}`;
    })
    .join("\n");
}

/** Formats projects or service accounts, with the role in each. */
export const roleTable = (list: { id: string; name: string; role: string; created_at: string }[]): string =>
  tableOf(list, [
    ["id", ({ id }) => id],
    ["name", ({ name }) => name],
    ["role", ({ role }) => role],
    ["created", ({ created_at }) => relativeTime(created_at)],
  ]);

const units: [name: string, seconds: number][] = [
  ["d", 86_400],
  ["h", 3_600],
  ["min", 60],
  ["s", 1],
];

/** `3 min ago`, `in 2 h`; the date for times more than 30 days away; `never` for null. */
export function relativeTime(iso: string | null, now = new Date()): string {
  if (iso === null) return "never";
  const seconds = Math.round((Date.parse(iso) - now.getTime()) / 1000);
  const distance = Math.abs(seconds);
  if (distance > 30 * 86_400) return iso.slice(0, 10);
  const [name, size] = units.find(([, length]) => distance >= length) ?? ["s", 1];
  // Rounded if it is to come: a key that was created a moment ago for 7 days expires in 7 d.
  const whole = seconds > 0 ? Math.round : Math.floor;
  const amount = `${whole(distance / size)} ${name}`;
  if (distance === 0) return "now";
  return seconds > 0 ? `in ${amount}` : `${amount} ago`;
}
