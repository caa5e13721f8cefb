/** Says what is wrong with a cron expression, and what would be right. Errand takes the five fields of crontab(5). */
import { cronFields, matchingDays, nicknames, parseCron } from "./cron.ts";

/** `detail` says what is wrong and what would be right. */
export interface CronFault {
  readonly code: "invalid_cron" | "invalid_timezone";
  readonly detail: string;
}

// The longest sensible expression, every value of every field in full, has 355 characters.
const MAX_LENGTH = 512;

interface Field {
  readonly name: string;
  readonly min: number;
  readonly max: number;
  /** How many values there are: 7 weekdays, though they count from 0 to 7. */
  readonly size: number;
  /** The first name stands for `min`. */
  readonly names: readonly string[];
}

const MONTHS = ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"];
const WEEKDAYS = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"];

const FIELDS: readonly Field[] = [
  { name: "minute", min: 0, max: 59, size: 60, names: [] },
  { name: "hour", min: 0, max: 23, size: 24, names: [] },
  { name: "day-of-month", min: 1, max: 31, size: 31, names: [] },
  { name: "month", min: 1, max: 12, size: 12, names: MONTHS },
  { name: "day-of-week", min: 0, max: 7, size: 7, names: WEEKDAYS },
];

/** Says what is wrong with an expression, or null. */
export function checkCron(expression: string): CronFault | null {
  const detail = shapeFault(expression) ?? fieldsFault(cronFields(expression)) ?? neverFault(expression);
  return detail === null ? null : { code: "invalid_cron", detail };
}

function shapeFault(expression: string): string | null {
  const text = expression.trim();
  const example = 'minute, hour, day of month, month, day of week; for example "0 9 * * MON-FRI"';
  if (text === "") return `The expression is empty. Write five fields: ${example}.`;
  if (text.length > MAX_LENGTH)
    return `The expression has ${text.length} characters. Use at most ${MAX_LENGTH}; ranges and steps are shorter than lists.`;
  if (/[^\t\x20-\x7e]/.test(text))
    return "The expression holds a character that is not plain ASCII, such as a typographic dash or a line break. Write it with letters, digits, spaces and * , - / # only.";
  if (text.startsWith("@")) return nicknames.includes(text.toLowerCase()) ? null : nicknameFault(text);

  const fields = text.split(/[ \t]+/);
  if (/^(?:CRON_)?TZ=/i.test(text)) {
    const rest = fields.slice(1).join(" ");
    const right =
      checkCron(rest) === null ? `: the expression is ${quote(rest)}` : ` and write five fields: ${example}`;
    return `${quote(fields[0])} does not belong in the expression. Put the zone into timezone${right}.`;
  }
  if (fields.length > 5) {
    const { dropped, rest } = withoutMore(fields);
    return `Errand takes five fields, this has ${fields.length}; drop ${dropped}: ${rest === null ? example : quote(rest)}.`;
  }
  if (fields.length < 5) return `Errand takes five fields, this has ${fields.length}. Write ${example}.`;
  return null;
}

/** Other crons put seconds before the five fields, and a year behind them: what to drop, and what is then right. */
function withoutMore(fields: readonly string[]): { dropped: string; rest: string | null } {
  const seconds = { dropped: "the seconds field", five: fields.slice(1) };
  const year = { dropped: "the year field", five: fields.slice(0, 5) };
  const both = { dropped: "the seconds and the year field", five: fields.slice(1, 6) };
  if (fields.length > 7) return { dropped: "what is too much", rest: null };
  const endsInYear = /^(?:\*|\d{4}.*)$/.test(fields.at(-1) ?? "");
  const ways = fields.length === 7 ? [both] : endsInYear ? [seconds, year] : [seconds];
  for (const { dropped, five } of ways) {
    // Quartz writes "?" for one of the two "*", and counts weekdays from 1: only by name they are the same days here.
    const isNamed = !/\d/.test(five[4] ?? "");
    const rest = five.map((field) => (field === "?" && isNamed ? "*" : field)).join(" ");
    if (checkCron(rest) === null) return { dropped, rest };
  }
  return { dropped: ways.at(-1)!.dropped, rest: null };
}

function nicknameFault(text: string): string {
  const known = `Use one of ${nicknames.join(", ")}, or five fields.`;
  const every = /^@every\s+([1-9]|[1-5]\d)m$/i.exec(text);
  if (/^@reboot$/i.test(text)) return `@reboot names no time: a schedule fires by the clock. ${known}`;
  if (every !== null)
    return `${quote(text)} is not cron. Write ${quote(`*/${every[1]} * * * *`)} if that is what you mean. ${known}`;
  return `${quote(text)} is not a nickname that Errand knows. ${known}`;
}

function fieldsFault(fields: readonly string[]): string | null {
  for (const [index, field] of FIELDS.entries()) {
    const text = fields[index] ?? "";
    for (const item of text.split(",")) {
      const problem = itemFault(field, item);
      if (problem !== null) return `The ${field.name} field is ${quote(text)}: ${problem}.`;
    }
  }
  return null;
}

/** One item of a list: `*`, `5`, `MON-FRI`, `10-50/20`, and the few forms that only one field knows. */
function itemFault(field: Field, item: string): string | null {
  if (item === "") return 'a list has no empty items; write "1,2,3"';
  const special = specialFault(field, item);
  if (special !== undefined) return special;

  const [span = "", step, ...more] = item.split("/");
  const ends = span === "*" ? [] : span.split("-");
  if (more.length > 0 || ends.length > 2) return howToWrite(field, item);
  const [low, high] = ends.map((end) => valueOf(field, end));
  if (ends.length > 0 && low === null) return howToWrite(field, item);
  if (ends.length > 1 && high === null) return howToWrite(field, item);
  for (const [index, value] of [low, high].entries()) {
    if (typeof value === "number" && (value < field.min || value > field.max)) {
      return `${ends[index]} is out of range; use ${field.min} to ${field.max}`;
    }
  }
  if (typeof low === "number" && typeof high === "number" && low > high) {
    return `the range ${quote(span)} runs backwards; write ${quote(forwards(field, ends))}`;
  }
  return step === undefined ? null : stepFault(field, step, low ?? null, high ?? null);
}

/** "22-2" is "22-23,0-2", and "FRI-SUN" is "FRI-SAT,SUN". */
function forwards(field: Field, ends: readonly string[]): string {
  const [from = "", to = ""] = ends;
  const named = Number.isNaN(Number(from)) && Number.isNaN(Number(to));
  const first = named ? field.names[0] : `${field.min}`;
  const last = named ? field.names.at(-1) : `${field.min + field.size - 1}`;
  const range = (low: string | undefined, high: string | undefined): string =>
    low === high ? `${low}` : `${low}-${high}`;
  const untilEnd = range(first, to.toUpperCase());
  // Sunday, where it is 7, is behind the last of them and the first of all.
  if (Number(from) === field.min + field.size) return untilEnd;
  return `${range(from.toUpperCase(), last)},${untilEnd}`;
}

function stepFault(field: Field, step: string, low: number | null, high: number | null): string | null {
  if (!/^\d+$/.test(step) || Number(step) === 0)
    return `the step ${quote(step)} must be a whole number from 1; write "*/5", for example`;
  const size = low === null ? field.size : Math.min(field.size, (high ?? field.max) - low + 1);
  if (low !== null && high === null) {
    const stepped = Number(step) > size ? `${low}` : `${low}-${field.max}/${step}`;
    const ways = Number(step) > field.size ? [stepped] : [stepped, `*/${step}`];
    return `a step needs a range; write ${ways.map(quote).join(", or ")}`;
  }
  if (Number(step) > size)
    return `the step ${step} is larger than its range of ${size}, so it would never take a second step; use at most ${size}, or name the values`;
  return null;
}

/** Forms of one field and of other crons: null is right, a text is wrong, undefined is none of them. */
function specialFault(field: Field, item: string): string | null | undefined {
  if (item.startsWith("?")) return '"?" is Quartz; write "*"';
  const fixed = `choose a fixed value, such as ${Math.min(17, field.max)}`;
  if (/^H\b/i.test(item)) return `"H" is Jenkins; ${fixed}`;
  if (item.includes("~")) return `"~" picks a random value, which Errand does not; ${fixed}`;
  if (field.name === "day-of-month") {
    if (/^L$/i.test(item)) return item === "L" ? null : 'write a capital "L"';
    if (/W/i.test(item))
      return 'nearest weekdays ("W") are not supported; name days, or use MON-FRI in the day-of-week field';
    if (/^L/i.test(item)) return '"L" stands by itself, for the last day of the month';
  }
  if (field.name === "day-of-week") {
    if (/^L$/i.test(item))
      return '"L" needs a weekday; write "5L" for the last Friday of the month, or "6" for Saturday';
    const nth = /^(\d+|[A-Z]{3})(L|#(.*))$/i.exec(item);
    if (nth === null) return undefined;
    const [, weekday = "", mark = "", number = ""] = nth;
    const value = valueOf(field, weekday);
    if (value === null || value > field.max) return howToWrite(field, item);
    if (mark === "l") return `write ${quote(item.toUpperCase())}`;
    if (mark.startsWith("#") && !/^[1-5]$/.test(number))
      return 'after "#" comes 1 to 5; write "FRI#2" for the second Friday of the month';
    return null;
  }
  return undefined;
}

function valueOf(field: Field, text: string): number | null {
  if (/^\d+$/.test(text)) return Number(text);
  const index = field.names.indexOf(text.toUpperCase());
  return index === -1 ? null : field.min + index;
}

function howToWrite(field: Field, item: string): string {
  const [first, second] =
    field.names.length > 0 ? [field.names[1], field.names[5]] : [field.min + 1, field.min + 5];
  const names = field.names.length > 0 ? ` or ${field.names[0]} to ${field.names.at(-1)}` : "";
  return `${quote(item)} cannot be read; write ${field.min} to ${field.max}${names}, a range "${first}-${second}", a list "${first},${second}" or a step "*/2"`;
}

/** 2000 to 2027 holds every weekday on every date, 29 February too. */
function neverFault(expression: string): string | null {
  const cron = parseCron(expression);
  for (let month = 0; month < 28 * 12; month++) {
    if (matchingDays(cron, 2000 + Math.floor(month / 12), month % 12) !== 0) return null;
  }
  return `${quote(expression.trim())} names a date that never comes, such as 30 February. Choose a day that the month has, or "L" for its last day.`;
}

function quote(text: string | undefined): string {
  return JSON.stringify(text ?? "");
}
