/** The one place that reads time; rules take `now` as a number, and tests give the engine a clock of their own. */

export interface Clock {
  /** Wall-clock time in milliseconds since the Unix epoch. Due times follow it, also when it jumps. */
  now(): number;
  /** Milliseconds from an arbitrary origin, never going back. Timeouts and durations follow it. */
  monotonic(): number;
  /** Runs `wake` once after `delayMs` of monotonic time; the answer cancels it. Delays over 2^31 ms are cut to that. */
  timer(delayMs: number, wake: () => void): () => void;
}

/** The longest delay that Node's timers take; a longer one would fire at once. */
const MAX_TIMER_MS = 2 ** 31 - 1;

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  timer(delayMs, wake) {
    const handle = setTimeout(wake, Math.min(Math.max(0, delayMs), MAX_TIMER_MS));
    return () => clearTimeout(handle);
  },
};

/** Times written lately: the requests of one moment write the same few. */
const written = new Map<number, string>();
const MAX_WRITTEN = 64;

/** RFC 3339, UTC, milliseconds: the one way in which Errand writes a time. */
export function formatTime(ms: number): string {
  const known = written.get(ms);
  if (known !== undefined) return known;
  if (written.size >= MAX_WRITTEN) written.clear();
  const text = new Date(ms).toISOString();
  written.set(ms, text);
  return text;
}

export function formatTimeOrNull(ms: number | null): string | null {
  return ms === null ? null : formatTime(ms);
}

/** RFC 3339 §5.6: hours go from 00 to 23, while ISO 8601 and Date know 24:00 too. */
const RFC3339 = /^\d{4}-\d{2}-\d{2}[Tt](?:[01]\d|2[0-3]):\d{2}:\d{2}(?:\.\d{1,9})?(?:[Zz]|[+-]\d{2}:\d{2})$/;

/** What can be written with the four digits that RFC 3339 has for a year, also after the change to UTC. */
const FIRST_MS = Date.parse("0000-01-01T00:00:00.000Z");
const LAST_MS = Date.parse("9999-12-31T23:59:59.999Z");

/** Milliseconds since the epoch of an RFC 3339 date-time, or null when it is not one (30 February included). */
export function parseTime(text: string): number | null {
  if (!RFC3339.test(text)) return null;
  const ms = Date.parse(text.toUpperCase());
  if (Number.isNaN(ms) || ms < FIRST_MS || ms > LAST_MS) return null;
  const day = Number(text.slice(8, 10));
  const daysInMonth = new Date(Date.UTC(Number(text.slice(0, 4)), Number(text.slice(5, 7)), 0)).getUTCDate();
  return day > daysInMonth ? null : ms;
}

const DAY_MS = 86_400_000;
let namedDay = Number.NaN;
let dayName = "";

/** The UTC day of a time, `2026-11-21`. */
export function utcDay(ms: number): string {
  const day = Math.floor(ms / DAY_MS);
  if (day !== namedDay) {
    dayName = new Date(ms).toISOString().slice(0, 10);
    namedDay = day;
  }
  return dayName;
}
