/** Prints an answer in the format that was asked for. */
import { stringify } from "../base/json.ts";
import { isObject, plainText } from "./cells.ts";
import { columnsOf } from "./columns.ts";
import { record } from "./record.ts";
import { table } from "./table.ts";
import { printable, type Terminal } from "./terminal.ts";

/** `table` is for people; the others are for programs, and the same on a terminal and off it. */
export const FORMATS = ["table", "json", "ndjson", "id"] as const;
export type Format = (typeof FORMATS)[number];
/** Of answers without ids: `id` is refused before anything is done, since there would be nothing to print after it. */
export const FORMATS_WITHOUT_ID = FORMATS.filter((format) => format !== "id");

/** The command was not used as it can be. */
export class UsageFault extends Error {}

/** `what` is the operation's name: it decides the columns of a list. */
export function print(what: string, answer: unknown, format: Format, terminal: Terminal): void {
  if (answer === null) return;
  const items = itemsOf(answer);
  switch (format) {
    case "json":
      return terminal.out(safe(stringify(answer, 2), terminal));
    case "ndjson":
      for (const item of items ?? [answer]) terminal.out(safe(inOneLine(stringify(item)), terminal));
      return;
    case "id":
      for (const item of items ?? [answer]) terminal.out(idOf(item));
      return;
    case "table":
      if (items?.length === 0) return terminal.say("(none)");
      for (const line of linesOf(what, answer, items, terminal)) terminal.out(line);
  }
}

function linesOf(
  what: string,
  answer: unknown,
  items: readonly unknown[] | null,
  terminal: Terminal,
): string[] {
  if (items !== null) return table(items, columnsOf(what, items), terminal);
  return isObject(answer) ? record(answer, terminal) : [plainText(answer)];
}

/** The items of a list; null for one thing. */
function itemsOf(answer: unknown): readonly unknown[] | null {
  const list = isObject(answer) ? answer["data"] : answer;
  return Array.isArray(list) ? (list as unknown[]) : null;
}

function idOf(item: unknown): string {
  const id = isObject(item) ? (item["id"] ?? item["name"]) : undefined;
  if (typeof id !== "string") throw new UsageFault("the answer has no ids: use -o json or -o ndjson here");
  return printable(id);
}

/** A raw value keeps the layout it came with; in JSON a line break can only stand between tokens, never in a string. */
function inOneLine(json: string): string {
  return json.replaceAll(/[\r\n]+/g, " ");
}

/** For programs a payload keeps its bytes; on a terminal, what would act on it is escaped, as JSON allows in any string. */
function safe(json: string, terminal: Terminal): string {
  return terminal.width === null ? json : printable(json);
}
