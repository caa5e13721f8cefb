/** Tables for people: as wide as they need to be, and on a terminal no wider than it. */
import { type Cell, cellOf, labelOf, valueAt } from "./cells.ts";
import type { Terminal } from "./terminal.ts";

const GAP = "  ";
/** A text is cut to no less than this. */
const MIN_CUT = 10;

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

/** First times lose their date, then long texts their end, then the last columns go; ids stay whole, to be copied. */
function fit(columns: readonly Column[], room: number): Column[] {
  const fitting = [...columns];
  const excess = () =>
    fitting.reduce((sum, { width }) => sum + width, 0) + GAP.length * (fitting.length - 1) - room;
  if (excess() > 0) {
    for (const column of fitting) {
      column.cells = column.cells.map((cell) =>
        cell.short === undefined ? cell : { ...cell, text: cell.short },
      );
      measured(column);
    }
  }
  while (excess() > 0) {
    const longest = fitting
      .filter(({ name, width }) => !isId(name) && width > MIN_CUT)
      .toSorted((a, b) => b.width - a.width)[0];
    if (longest === undefined) break;
    longest.width = Math.max(MIN_CUT, longest.width - excess());
  }
  while (excess() > 0 && fitting.length > 1) fitting.pop();
  return fitting;
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

const WIDE =
  /\p{Script=Han}|\p{Script=Hiragana}|\p{Script=Katakana}|\p{Script=Hangul}|\p{Emoji_Presentation}|[\uff01-\uff60]/u;

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
