/** How one value of an answer is shown to a person. */
import { formatTime, parseTime } from "../base/clock.ts";
import { describeDuration } from "../base/duration.ts";
import { RawJson, stringify } from "../base/json.ts";
import { printable, type Style } from "./terminal.ts";

export interface Cell {
  readonly text: string;
  /** The same in less room. */
  readonly short?: string;
  readonly style: Style | null;
}

/** Colours by what a value says, whatever the field: states of jobs and callbacks, outcomes of the ledger. */
const STATES: Readonly<Record<string, Style>> = {
  pending: "yellow",
  active: "cyan",
  completed: "green",
  failed: "red",
  cancelled: "dim",
  awaiting_approval: "magenta",
  delivered: "green",
  fired: "green",
  late: "yellow",
  missed: "red",
  skipped_overlap: "dim",
};

const STATE_FIELDS = new Set(["status", "outcome", "result"]);

/** The value at a path of names, `counts.pending`. */
export function valueAt(item: unknown, path: string): unknown {
  let value = item;
  for (const name of path.split(".")) value = isObject(value) ? value[name] : undefined;
  return value;
}

export function cellOf(name: string, value: unknown, now: number): Cell {
  // Only a pipeline has none: its steps have URLs of their own, which lists leave out.
  if (name === "url" && value === null) return { text: "(pipeline)", style: "dim" };
  if (value === null || value === undefined) return { text: "", style: null };
  if (value instanceof RawJson) return { text: printable(value.text), style: null };
  if (typeof value === "string") {
    // Errand's own times are in UTC; one with an offset is a local time, and is meant to be read as such.
    const time = value.endsWith("Z") ? parseTime(value) : null;
    if (time !== null) return timeCell(time, now);
    return { text: printable(value), style: STATE_FIELDS.has(name) ? (STATES[value] ?? null) : null };
  }
  if (typeof value === "number" && name.endsWith("_ms"))
    return { text: describeDuration(value), style: null };
  if (Array.isArray(value) && !value.some(isObject))
    return { text: printable(value.map(plainText).join(", ")), style: null };
  return { text: printable(plainText(value)), style: null };
}

/** A value as text: a string as it is, anything else as JSON. */
export function plainText(value: unknown): string {
  return typeof value === "string" ? value : stringify(value);
}

/** How a field is called beside its value, which shows by itself that it is a time or a duration. */
export function labelOf(name: string): string {
  if (name === "response_code") return "code";
  return name.replace(/_(ms|at)$/, "").replaceAll(/[_.]/g, " ");
}

function timeCell(time: number, now: number): Cell {
  const absolute = formatTime(time).replace("T", " ").replace(/\.\d+/, "");
  return { text: `${absolute} (${relative(time, now)})`, short: relative(time, now), style: null };
}

export function relative(time: number, now: number): string {
  const away = Math.abs(time - now);
  if (away < 1_000) return "now";
  return time > now ? `in ${describeDuration(away)}` : `${describeDuration(away)} ago`;
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value) && !(value instanceof RawJson);
}
