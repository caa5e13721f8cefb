/** One thing for people: a line for each field that says something, lists of things as tables below. */
import { RawJson } from "../base/json.ts";
import { cellOf, isObject, labelOf } from "./cells.ts";
import { columnsOf } from "./columns.ts";
import { table, textWidth } from "./table.ts";
import type { Terminal } from "./terminal.ts";

export function record(thing: Readonly<Record<string, unknown>>, terminal: Terminal): string[] {
  const fields = telling(thing, "");
  const widest = fields.reduce((width, [name]) => Math.max(width, textWidth(labelOf(name))), 0);
  const indent = " ".repeat(widest + 2);
  const now = terminal.clock.now();
  const lines = fields.map(([name, value]) => {
    const { text, style } = cellOf(name.slice(name.lastIndexOf(".") + 1), value, now);
    const label = terminal.paint(labelOf(name).padEnd(widest + 2), "dim");
    return label + terminal.paint(text.replaceAll("\n", `\n${indent}`), style);
  });
  for (const [name, value] of Object.entries(thing)) {
    if (!isList(value)) continue;
    lines.push("", terminal.paint(labelOf(name), "dim"), ...table(value, columnsOf(name, value), terminal));
  }
  return lines;
}

/** Fields with something to say, objects opened: nothing, an empty list and a plain no are left out. */
function telling(thing: Readonly<Record<string, unknown>>, prefix: string): [name: string, value: unknown][] {
  return Object.entries(thing).flatMap(([name, value]): [string, unknown][] => {
    const path = prefix + name;
    if (isObject(value))
      return name.endsWith("headers") ? headerFields(path, value) : telling(value, `${path}.`);
    return saysNothing(value) || isList(value) ? [] : [[path, value]];
  });
}

function saysNothing(value: unknown): boolean {
  if (value instanceof RawJson) return value.text === "null";
  return value == null || value === false || (Array.isArray(value) && value.length === 0);
}

function headerFields(path: string, headers: Readonly<Record<string, unknown>>): [string, unknown][] {
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${String(value)}`);
  return lines.length === 0 ? [] : [[path, lines.join("\n")]];
}

function isList(value: unknown): value is readonly unknown[] {
  return Array.isArray(value) && value.some(isObject);
}
