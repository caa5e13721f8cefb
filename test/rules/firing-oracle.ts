/** A second opinion on fire times: random expressions that know what they match, and a walk over every UTC minute. */
import * as fc from "fast-check";
import type { PreviewedFireTime } from "../../src/schedules/firing.ts";

const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;

interface Field {
  readonly text: string;
  readonly has: (value: number, last: number) => boolean;
}

export interface Expression {
  readonly text: string;
  /** Whether a wall clock, read as if it were UTC, matches. */
  readonly matches: (localMs: number) => boolean;
  readonly everyHour: boolean;
  readonly wildcard: boolean;
}

const star: Field = { text: "*", has: () => true };

/** `5`, `1-5`, `10-50/20`; `wrap` reads a value that the field shows (weekday 7) as the one that is meant (0). */
function item(
  min: number,
  max: number,
  names: readonly string[] = [],
  wrap = (value: number) => value,
): fc.Arbitrary<Field> {
  const spelled = (value: number): fc.Arbitrary<string> => {
    const name = names[value - min];
    return name === undefined
      ? fc.constant(String(value))
      : fc.constantFrom(String(value), name, name.toLowerCase());
  };
  const value = fc.integer({ min, max });
  const single = value.chain((v) => spelled(v).map((text) => ({ text, has: (x: number) => x === wrap(v) })));
  const range = fc.tuple(value, value, fc.boolean(), fc.nat()).map(([a, b, stepped, n]) => {
    const [low, high] = [Math.min(a, b), Math.max(a, b)];
    const step = stepped ? 1 + (n % Math.min(high - low + 1, names === WEEKDAYS ? 7 : 60)) : 1;
    const values = new Set<number>();
    for (let v = low; v <= high; v += step) values.add(wrap(v));
    return { text: stepped ? `${low}-${high}/${step}` : `${low}-${high}`, has: (x: number) => values.has(x) };
  });
  return fc.oneof(single, range);
}

function list(one: fc.Arbitrary<Field>): fc.Arbitrary<Field> {
  return fc.array(one, { minLength: 1, maxLength: 3 }).map((items) => ({
    text: items.map(({ text }) => text).join(","),
    has: (value: number, last: number) => items.some((i) => i.has(value, last)),
  }));
}

function starred(min: number, size: number): fc.Arbitrary<Field> {
  return fc
    .integer({ min: 1, max: size })
    .map((step) => ({ text: `*/${step}`, has: (value: number) => (value - min) % step === 0 }));
}

const MONTHS = ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"];
const WEEKDAYS = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"];
const lastDay: Field = { text: "L", has: (day, last) => day === last };

// For weekdays `has` gets the day of the month and the weekday in one number, so that FRI#2 and FRIL can be told.
const weekdayItem = item(0, 7, WEEKDAYS, (value) => value % 7).map(({ text, has }) => ({
  text,
  has: (code: number, last: number) => has(code % 10, last),
}));
const nthWeekday = fc
  .tuple(fc.integer({ min: 0, max: 7 }), fc.integer({ min: 1, max: 5 }))
  .map(([weekday, nth]) => ({
    text: `${weekday}#${nth}`,
    has: (code: number) => code % 10 === weekday % 7 && Math.ceil(Math.floor(code / 10) / 7) === nth,
  }));
const lastWeekday = fc.integer({ min: 0, max: 7 }).map((weekday) => ({
  text: `${weekday}L`,
  has: (code: number, last: number) => code % 10 === weekday % 7 && Math.floor(code / 10) + 7 > last,
}));

const minuteField = fc.oneof(
  { arbitrary: list(item(0, 59)), weight: 5 },
  { arbitrary: fc.constant(star), weight: 1 },
  { arbitrary: starred(0, 60), weight: 2 },
);
const smallHours = list(item(0, 4));
const hourField = fc.oneof(
  { arbitrary: smallHours, weight: 4 },
  { arbitrary: list(item(0, 23)), weight: 2 },
  { arbitrary: fc.constant(star), weight: 2 },
  { arbitrary: fc.constant<Field>({ text: "0-23", has: () => true }), weight: 1 },
  { arbitrary: starred(0, 24), weight: 2 },
);
const restrictedDay = list(
  fc.oneof({ arbitrary: item(1, 31), weight: 5 }, { arbitrary: fc.constant(lastDay), weight: 1 }),
);
const restrictedWeekday = list(fc.oneof({ arbitrary: weekdayItem, weight: 5 }, nthWeekday, lastWeekday));
const anyWeekday = starred(0, 7).map(({ text, has }) => ({
  text,
  has: (code: number, last: number) => has(code % 10, last),
}));

function expressionOf(minute: Field, hour: Field, day: Field, month: Field, weekday: Field): Expression {
  const isStar = (field: Field): boolean => field.text.startsWith("*");
  const matches = (localMs: number): boolean => {
    const at = new Date(localMs);
    if (
      !minute.has(at.getUTCMinutes(), 59) ||
      !hour.has(at.getUTCHours(), 23) ||
      !month.has(at.getUTCMonth() + 1, 12)
    )
      return false;
    const last = new Date(Date.UTC(at.getUTCFullYear(), at.getUTCMonth() + 1, 0)).getUTCDate();
    const byDay = day.has(at.getUTCDate(), last);
    const byWeekday = weekday.has(at.getUTCDate() * 10 + at.getUTCDay(), last);
    return isStar(day) || isStar(weekday) ? byDay && byWeekday : byDay || byWeekday;
  };
  const everyHour = Array.from({ length: 24 }, (_, h) => h).every((h) => hour.has(h, 23));
  return {
    text: [minute, hour, day, month, weekday].map(({ text }) => text).join(" "),
    matches,
    everyHour,
    wildcard: everyHour || isStar(minute) || isStar(hour),
  };
}

/** Mostly every day, and at the hours where clocks change. */
export const frequent: fc.Arbitrary<Expression> = fc
  .tuple(
    minuteField,
    hourField,
    fc.oneof({ arbitrary: fc.constant(star), weight: 5 }, starred(1, 3), restrictedDay),
    fc.constant(star),
    fc.oneof({ arbitrary: fc.constant(star), weight: 5 }, anyWeekday, restrictedWeekday),
  )
  .map((fields) => expressionOf(...fields));

/** Mostly a few days of the year. */
export const rare: fc.Arbitrary<Expression> = fc
  .tuple(
    item(0, 59),
    item(0, 23),
    fc.oneof(fc.constant(star), starred(1, 31), restrictedDay),
    fc.oneof(fc.constant(star), starred(1, 12), list(item(1, 12, MONTHS))),
    fc.oneof(fc.constant(star), anyWeekday, restrictedWeekday),
  )
  .map((fields) => expressionOf(...fields));

/** Fixed times only, with plain day fields: where croner follows the same rules. */
export const agreedWithCroner: fc.Arbitrary<Expression> = fc
  .tuple(
    fc.array(fc.integer({ min: 0, max: 59 }), { minLength: 1, maxLength: 2 }),
    fc.array(fc.integer({ min: 0, max: 23 }), { minLength: 1, maxLength: 3 }),
    fc.oneof(
      fc.constant(star),
      list(fc.integer({ min: 1, max: 31 }).map((v) => ({ text: String(v), has: (x: number) => x === v }))),
    ),
    fc.oneof(fc.constant(star), list(item(1, 12, MONTHS))),
    fc.oneof(fc.constant(star), list(weekdayItem)),
  )
  .map(([minutes, hours, day, month, weekday]) => {
    const fixed = (values: readonly number[]): Field => ({
      text: values.join(","),
      has: (x) => values.includes(x),
    });
    return expressionOf(fixed(minutes), fixed(hours), day, month, weekday);
  });

/** All fire times in [fromMs, toMs), found by looking at the wall clock in every single minute. */
export function fireTimesByTheMinute(
  expression: Expression,
  timezone: string,
  fromMs: number,
  toMs: number,
): PreviewedFireTime[] {
  const wallClock = wallClockOf(timezone);
  const timesShown = new Map<number, number>();
  const found: { at: number; localMs: number; gap: boolean }[] = [];
  // Two days around, to know what the clock has shown already and what it will show again.
  let highestMs = wallClock(fromMs - 2 * DAY_MS - MINUTE_MS);
  let previousMs = highestMs;
  for (let at = fromMs - 2 * DAY_MS; at < toMs + 2 * DAY_MS; at += MINUTE_MS) {
    const localMs = wallClock(at);
    timesShown.set(localMs, (timesShown.get(localMs) ?? 0) + 1);
    let gap = false;
    for (
      let skippedMs = previousMs + MINUTE_MS;
      skippedMs < localMs && !expression.everyHour;
      skippedMs += MINUTE_MS
    ) {
      gap ||= expression.matches(skippedMs);
    }
    if (gap || (expression.matches(localMs) && (expression.wildcard || localMs > highestMs)))
      found.push({ at, localMs, gap });
    highestMs = Math.max(highestMs, localMs);
    previousMs = localMs;
  }
  return found
    .filter(({ at }) => at >= fromMs && at < toMs)
    .map(({ at, localMs, gap }) => {
      const local = rfc3339(localMs, localMs - at);
      if (gap) return { at, local, note: "dst_gap" };
      return timesShown.get(localMs) === 2 ? { at, local, note: "dst_repeat" } : { at, local };
    });
}

/** What a clock on the wall shows, as if it were UTC; asked of Intl by its fields, not by its offset. */
function wallClockOf(timezone: string): (atMs: number) => number {
  const format = new Intl.DateTimeFormat("en-GB", {
    timeZone: timezone,
    year: "numeric",
    month: "2-digit",
    day: "2-digit",
    hour: "2-digit",
    minute: "2-digit",
    hourCycle: "h23",
  });
  return (atMs) => {
    const [day = 0, month = 0, year = 0, hour = 0, minute = 0] = (
      format.format(atMs).match(/\d+/g) ?? []
    ).map(Number);
    return Date.UTC(year, month - 1, day, hour, minute);
  };
}

function rfc3339(localMs: number, offsetMs: number): string {
  const size = new Date(Math.abs(offsetMs)).toISOString().slice(11, 16);
  return `${new Date(localMs).toISOString().slice(0, 19)}${offsetMs < 0 ? "-" : "+"}${size}`;
}

/** Instants near which a clock changes, in the zones that break assumptions, and some near nothing at all. */
export const placesAndTimes: fc.Arbitrary<{ timezone: string; nearMs: number }> = fc
  .tuple(
    fc.constantFrom(
      ["Europe/Berlin", "2026-03-29T01:00Z"],
      ["Europe/Berlin", "2026-10-25T01:00Z"],
      ["America/New_York", "2026-03-08T07:00Z"],
      ["America/New_York", "2026-11-01T06:00Z"],
      ["Australia/Lord_Howe", "2026-10-03T15:30Z"],
      ["Australia/Lord_Howe", "2026-04-04T15:00Z"],
      ["America/Sao_Paulo", "2018-11-04T03:00Z"],
      ["America/Sao_Paulo", "2019-02-17T02:00Z"],
      ["Africa/Casablanca", "2026-02-15T02:00Z"],
      ["Africa/Casablanca", "2026-03-22T02:00Z"],
      ["Pacific/Apia", "2011-12-30T10:00Z"],
      ["Antarctica/Troll", "2026-03-29T01:00Z"],
      ["Antarctica/Troll", "2026-10-25T01:00Z"],
      ["America/St_Johns", "2006-10-29T02:31Z"],
      ["America/Recife", "2000-10-08T03:00Z"],
      ["Asia/Kathmandu", "1985-12-31T18:30Z"],
      ["Asia/Pyongyang", "2018-05-04T15:00Z"],
      ["America/Caracas", "2016-05-01T07:00Z"],
      ["Asia/Kolkata", "2026-07-01T00:00Z"],
      ["UTC", "2026-07-01T00:00Z"],
    ),
    fc.integer({ min: -2 * 1440, max: 1440 }),
    fc.oneof(
      { arbitrary: fc.constant(0), weight: 4 },
      { arbitrary: fc.integer({ min: -15 * 365, max: 15 * 365 }), weight: 1 },
    ),
  )
  .map(([[timezone = "UTC", near = ""], minutes, days]) => ({
    timezone,
    nearMs: Date.parse(near) + minutes * MINUTE_MS + days * DAY_MS,
  }));
