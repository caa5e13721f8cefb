/** What a cron expression means: the days and the minutes of a wall clock that it names. The only importer of cron-parser. */
import { CronExpressionParser } from "cron-parser";

const MINUTE_MS = 60_000;

// The fifth Monday of February (`0 0 * 2 1#5`) needs a 29 February that is a Monday, and from 2072 the next one is
// 40 years away, because 2100 is no leap year. Nothing that a calendar can name is rarer.
const SEARCH_MONTHS = 41 * 12;

/** An expression as data. Days of the week count from 0, Sunday; months from 0, January. */
export interface Cron {
  /** By minute of the hour (index): the first matching minute at or after it, or -1. */
  readonly minuteFrom: Int8Array;
  /** By hour of the day: the first matching hour at or after it, or -1. */
  readonly hourFrom: Int8Array;
  /** Bit n is day n of the month. */
  readonly daysOfMonth: number;
  readonly lastDayOfMonth: boolean;
  /** Bit n is month n. */
  readonly months: number;
  /** Bit n is weekday n. */
  readonly weekdays: number;
  /** Weekdays that count only as the nth (1 to 5) of their month, or as the last one. */
  readonly nthWeekdays: readonly { weekday: number; nth: number | "last" }[];
  /** A day must match both day fields rather than either one. */
  readonly bothDayFields: boolean;
  /** Every hour of the day matches. */
  readonly everyHour: boolean;
  /** How many times of day match. */
  readonly timesPerDay: number;
  /** An interval rather than a time of day: it fires in both passes of a repeated hour. See firing.ts. */
  readonly wildcard: boolean;
  /** The days of the month that was asked for last, since the next question is mostly about the same one. */
  readonly lastAsked: { month: number; days: number };
}

// crontab(5), "extensions", without @reboot: Errand starts on no user's behalf.
const NICKNAMES: ReadonlyMap<string, string> = new Map([
  ["@hourly", "0 * * * *"],
  ["@daily", "0 0 * * *"],
  ["@midnight", "0 0 * * *"],
  ["@weekly", "0 0 * * 0"],
  ["@monthly", "0 0 1 * *"],
  ["@yearly", "0 0 1 1 *"],
  ["@annually", "0 0 1 1 *"],
]);

export const nicknames: readonly string[] = [...NICKNAMES.keys()];

/** The fields of an expression, a nickname written out; five of them if the expression is a right one. */
export function cronFields(expression: string): string[] {
  const text = expression.trim();
  return (NICKNAMES.get(text.toLowerCase()) ?? text).split(/[ \t]+/);
}

/** The fields with each number as short as it can be: the libraries know "7" and "5L", and stumble over "07" and "05L". */
export function plainFields(expression: string): string[] {
  return cronFields(expression).map((field) => field.replace(/(?<!\d)0+(?=\d)/g, ""));
}

/** Reads an expression that `checkCron` has passed. Throws on one that is wrong beyond what cron-parser forgives. */
export function parseCron(expression: string): Cron {
  const [minute = "", hour = "", dayOfMonth = "", month = "", dayOfWeek = ""] = plainFields(expression);
  const lists = [minute, hour, dayOfMonth, month, dayOfWeek].map((field) => field.split(","));
  const rows = Math.max(...lists.map((list) => list.length));

  const minutes = new Set<number>();
  const hours = new Set<number>();
  const nthWeekdays: { weekday: number; nth: number | "last" }[] = [];
  let daysOfMonth = 0;
  let lastDayOfMonth = false;
  let months = 0;
  let weekdays = 0;

  // cron-parser refuses lists whose items overlap (`1-5,3`, `0,7`) or hold several `#`, which crontab(5) allows or does
  // not know. So it gets one item of each field at a time. The month goes apart, since it also refuses 30 February,
  // which is one part of a good expression when the list goes on (`0 0 30 2,3 *`).
  for (let row = 0; row < rows; row++) {
    const [m = "", h = "", dom = "", mon = "", dow = ""] = lists.map(
      (list) => list[Math.min(row, list.length - 1)],
    );
    const { fields } = CronExpressionParser.parse(`${m} ${h} ${dom} * ${dow}`);
    const monthField = mon === "*" ? fields.month : CronExpressionParser.parse(`* * * ${mon} *`).fields.month;
    for (const value of fields.minute.values) minutes.add(value);
    for (const value of fields.hour.values) hours.add(value);
    for (const value of monthField.values) months |= 1 << (value - 1);
    for (const value of fields.dayOfMonth.values) {
      if (typeof value === "number") daysOfMonth |= 1 << value;
      else lastDayOfMonth = true;
    }
    for (const value of fields.dayOfWeek.values) {
      const weekday = Number.parseInt(String(value), 10) % 7;
      if (typeof value !== "number") nthWeekdays.push({ weekday, nth: "last" });
      else if (fields.dayOfWeek.nthDay > 0) nthWeekdays.push({ weekday, nth: fields.dayOfWeek.nthDay });
      else weekdays |= 1 << weekday;
    }
  }

  const everyHour = hours.size === 24;
  return {
    minuteFrom: firstAtOrAfter(minutes, 60),
    hourFrom: firstAtOrAfter(hours, 24),
    daysOfMonth,
    lastDayOfMonth,
    months,
    weekdays,
    nthWeekdays,
    // Vixie cron: a day field that starts with `*`, also `*/2`, leaves the choice to the other one, and a day must match
    // both; with both restricted, either one will do. POSIX crontab says the same and has no steps.
    bothDayFields: dayOfMonth.startsWith("*") || dayOfWeek.startsWith("*"),
    everyHour,
    timesPerDay: hours.size * minutes.size,
    wildcard: everyHour || minute.startsWith("*") || hour.startsWith("*"),
    lastAsked: { month: -1, days: 0 },
  };
}

/** The first matching local minute at or after `localMs` (a wall clock read as if it were UTC), or null. */
export function nextLocalMinute(cron: Cron, localMs: number): number | null {
  const fromMs = Math.ceil(localMs / MINUTE_MS) * MINUTE_MS;
  const date = new Date(fromMs);
  let year = date.getUTCFullYear();
  let month = date.getUTCMonth();
  let day = date.getUTCDate();
  let timeMs = nextTimeOfDayMs(cron, date.getUTCHours(), date.getUTCMinutes());
  for (let searched = 0; searched < SEARCH_MONTHS; searched++) {
    const days = matchingDays(cron, year, month);
    if (timeMs === null) {
      day++;
      timeMs = nextTimeOfDayMs(cron, 0, 0);
    }
    const nextDay = lowestBitFrom(days, day);
    if (nextDay !== -1) {
      if (nextDay !== day) timeMs = nextTimeOfDayMs(cron, 0, 0);
      return timeMs === null ? null : Date.UTC(year, month, nextDay) + timeMs;
    }
    day = 0;
    timeMs = null;
    month = (month + 1) % 12;
    if (month === 0) year++;
  }
  return null;
}

/** The days of a month that match, as bits; month counts from 0. */
export function matchingDays(cron: Cron, year: number, month: number): number {
  if ((cron.months & (1 << month)) === 0) return 0;
  const asked = year * 12 + month;
  if (cron.lastAsked.month !== asked) {
    cron.lastAsked.month = asked;
    cron.lastAsked.days = findMatchingDays(cron, year, month);
  }
  return cron.lastAsked.days;
}

function findMatchingDays(cron: Cron, year: number, month: number): number {
  const length = new Date(Date.UTC(year, month + 1, 0)).getUTCDate();
  const firstWeekday = new Date(Date.UTC(year, month, 1)).getUTCDay();
  const firstDayOf = (weekday: number): number => 1 + ((weekday - firstWeekday + 7) % 7);

  let byDate = cron.daysOfMonth;
  if (cron.lastDayOfMonth) byDate |= 1 << length;

  let byWeekday = 0;
  for (let weekday = 0; weekday < 7; weekday++) {
    if ((cron.weekdays & (1 << weekday)) === 0) continue;
    for (let day = firstDayOf(weekday); day <= length; day += 7) byWeekday |= 1 << day;
  }
  for (const { weekday, nth } of cron.nthWeekdays) {
    const first = firstDayOf(weekday);
    const day = nth === "last" ? first + 7 * Math.floor((length - first) / 7) : first + 7 * (nth - 1);
    if (day <= length) byWeekday |= 1 << day;
  }

  const inMonth = length === 31 ? -2 : (1 << (length + 1)) - 2;
  return (cron.bothDayFields ? byDate & byWeekday : byDate | byWeekday) & inMonth;
}

function nextTimeOfDayMs(cron: Cron, hour: number, minute: number): number | null {
  let nextHour = cron.hourFrom[hour] ?? -1;
  let nextMinute = nextHour === hour ? (cron.minuteFrom[minute] ?? -1) : (cron.minuteFrom[0] ?? -1);
  if (nextMinute === -1) {
    nextHour = cron.hourFrom[hour + 1] ?? -1;
    nextMinute = cron.minuteFrom[0] ?? -1;
  }
  return nextHour === -1 ? null : (nextHour * 60 + nextMinute) * MINUTE_MS;
}

function firstAtOrAfter(values: ReadonlySet<number>, size: number): Int8Array {
  const table = new Int8Array(size).fill(-1);
  for (let index = size - 1, next = -1; index >= 0; index--) {
    if (values.has(index)) next = index;
    table[index] = next;
  }
  return table;
}

function lowestBitFrom(bits: number, from: number): number {
  if (from > 31) return -1;
  const rest = bits & (-1 << from);
  return rest === 0 ? -1 : 31 - Math.clz32(rest & -rest);
}
