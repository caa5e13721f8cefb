/** Tables for people: as wide as they need to be, and on a terminal no wider than it. */
import { type Cell, cellOf, labelOf, valueAt } from "./cells.ts";
import type { Terminal } from "./terminal.ts";

const GAP = "  ";
/** A text is cut to no less than this: less of a URL or of a list tells nothing. */
const MIN_CUT = 16;

interface Column {
  readonly name: string;
  readonly heading: string;
  cells: readonly Cell[];
  width: number;
}

/** A heading and one line for each item. Columns in which no item has anything are left out. */
export function table(items: readonly unknown[], names: readonly string[], terminal: Terminal): string[] {
  const now = terminal.clock.now();
  const columns = names
    .map((name) => {
      const cells = items.map((item) => cellOf(lastName(name), valueAt(item, name), now));
      return measured({ name, heading: labelOf(lastName(name)).toUpperCase(), cells, width: 0 });
    })
    .filter(({ cells }) => cells.some(({ text }) => text !== ""));
  const fitting = terminal.width === null ? columns : fit(columns, terminal.width);
  const heading = fitting.map(({ heading: text, width }) => pad(cutTo(text, width), width)).join(GAP);
  const lines = items.map((_, row) =>
    fitting
      .map((column) => {
        const { text, style } = column.cells[row]!;
        const cut = cutTo(oneLine(text), column.width);
        return terminal.paint(cut, style) + " ".repeat(column.width - textWidth(cut));
      })
      .join(GAP)
      .trimEnd(),
  );
  return [terminal.paint(heading.trimEnd(), "bold"), ...lines];
}

/**
 * First times lose their date, then the last columns go for which there is no room even when long texts are cut, and of
 * those that stay the long texts lose their end. Ids stay whole, to be copied.
 */
function fit(columns: readonly Column[], room: number): Column[] {
  const fitting = [...columns];
  const excess = (widthOf: (column: Column) => number) =>
    fitting.reduce((sum, column) => sum + widthOf(column), 0) + GAP.length * (fitting.length - 1) - room;
  const whole = ({ width }: Column) => width;
  if (excess(whole) > 0) {
    for (const column of fitting) {
      column.cells = column.cells.map((cell) =>
        cell.short === undefined ? cell : { ...cell, text: cell.short },
      );
      measured(column);
    }
  }
  while (excess(leastWidth) > 0 && fitting.length > 1) fitting.pop();
  while (excess(whole) > 0) {
    const longest = fitting
      .filter((column) => column.width > leastWidth(column))
      .toSorted((a, b) => b.width - a.width)[0];
    if (longest === undefined) break;
    longest.width = Math.max(MIN_CUT, longest.width - excess(whole));
  }
  return fitting;
}

function leastWidth({ name, width }: Column): number {
  return isId(name) ? width : Math.min(width, MIN_CUT);
}

function measured(column: Column): Column {
  const widths = column.cells.map(({ text }) => textWidth(oneLine(text)));
  column.width = widths.reduce((widest, width) => Math.max(widest, width), textWidth(column.heading));
  return column;
}

function isId(name: string): boolean {
  return name === "id" || name.endsWith("_id");
}

function lastName(path: string): string {
  return path.slice(path.lastIndexOf(".") + 1);
}

function oneLine(text: string): string {
  return text.replaceAll(/\s*\n\s*/g, " ");
}

function pad(text: string, width: number): string {
  return text + " ".repeat(Math.max(0, width - textWidth(text)));
}

function cutTo(text: string, width: number): string {
  if (textWidth(text) <= width) return text;
  let cut = "";
  let used = 0;
  for (const segment of graphemesOf(text)) {
    const next = used + graphemeWidth(segment);
    if (next > width - 1) break;
    cut += segment;
    used = next;
  }
  return `${cut}…`;
}

/** What a reader takes for one character. */
function graphemesOf(text: string): string[] {
  return Array.from(new Intl.Segmenter().segment(text), ({ segment }) => segment);
}

/**
 * East Asian Wide and Fullwidth (UAX #11), by blocks: the marks between the letters, such as `ー` and `。`, are of no script
 * of their own, and halfwidth katakana are narrow.
 */
const WIDE =
  /[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\ua960-\ua97f\uac00-\ud7a3\uf900-\ufaff\ufe10-\ufe19\ufe30-\ufe6f\uff01-\uff60\uffe0-\uffe6\u{1b000}-\u{1b2ff}\u{20000}-\u{3fffd}]|\p{Emoji_Presentation}/u;

function graphemeWidth(grapheme: string): number {
  return WIDE.test(grapheme) ? 2 : 1;
}

/** Terminal columns that a text takes. */
export function textWidth(text: string): number {
  if (/^[\x20-\x7e\u2026]*$/.test(text)) return text.length;
  let width = 0;
  for (const segment of graphemesOf(text)) width += graphemeWidth(segment);
  return width;
}
