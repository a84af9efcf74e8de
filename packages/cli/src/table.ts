import { printable, type Style, styled } from "./terminal.ts";

/* Tables and times for a person to read. */

// Characters that are two columns wide.
const WIDE =
  /\p{Emoji_Presentation}|[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6]|[\u{20000}-\u{3fffd}]/u;
const graphemes = new Intl.Segmenter();

/** The width of a text on a terminal, in columns. */
export const widthOf = (text: string): number =>
  [...graphemes.segment(text)].reduce((sum, { segment }) => sum + (WIDE.test(segment) ? 2 : 1), 0);

export interface Cell {
  text: string;
  style?: Style;
}

/** Formats an aligned table. Escapes what would act on the terminal. */
export function table(titles: string[], cells: (string | Cell)[][]): string {
  const head = titles.map((text): Cell => ({ text: text.toUpperCase(), style: "dim" }));
  const rows = [head, ...cells.map((row) => row.map(toCell))];
  const widths = titles.map((_, column) => Math.max(...rows.map((row) => widthOf(row[column]?.text ?? ""))));
  return rows.map((row) => line(row, widths)).join("\n");
}

function toCell(cell: string | Cell): Cell {
  const { text, style } = typeof cell === "string" ? { text: cell } : cell;
  return { text: printable(text), ...(style && { style }) };
}

function line(row: Cell[], widths: number[]): string {
  const last = row.length - 1;
  return row
    .map(({ text, style }, column) => {
      const padding = column === last ? "" : " ".repeat((widths[column] ?? 0) - widthOf(text));
      return (style ? styled(style, text) : text) + padding;
    })
    .join("  ")
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
  const amount = `${Math.floor(distance / size)} ${name}`;
  if (distance === 0) return "now";
  return seconds > 0 ? `in ${amount}` : `${amount} ago`;
}
