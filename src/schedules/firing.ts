/**
 * When a schedule fires: the instants that an expression names in a time zone, through every change of its clock.
 *
 * The rule for a change of the clock, as CONTRACT §5 and §10 promise it:
 *
 *   expression                         a time inside the gap          a time that comes twice
 *   every hour (hour `*`, `0-23`)      does not exist: none           fires both times
 *   minute or hour starts with `*`     one firing, as the gap ends    fires both times
 *   all others (`30 2 * * *`)          one firing, as the gap ends    fires the first time
 *
 * The first two rows are the wildcards: in vixie cron a minute or hour field that starts with an asterisk makes one, and
 * cron(8) says that jobs which do not run at a specific time are scheduled normally. Vixie cron also drops a wildcard's
 * times in the gap, and with `* 2 * * *` the whole night's work; that is harmless only where every hour has its run.
 */
import { type Cron, nextLocalMinute, parseCron } from "./cron.ts";
import { formatLocal, type OffsetSpan, offsetSpanAt } from "./zone.ts";

/** What decides a schedule's times. `startsAt` and `endsAt` are ms since the epoch, and both still fire. */
export interface FireTimes {
  readonly cronExpr: string;
  readonly timezone: string;
  readonly startsAt: number | null;
  readonly endsAt: number | null;
}

export interface PreviewedFireTime {
  /** ms since the epoch */
  readonly at: number;
  /** The wall clock and its offset, RFC 3339. */
  readonly local: string;
  /** `dst_gap`: it stands in for a time that the clock skips. `dst_repeat`: this wall clock time comes twice. */
  readonly note?: "dst_gap" | "dst_repeat";
}

// RFC 3339 has four digits for the year; a day is left for the offset.
const LAST_INSTANT_MS = Date.UTC(9999, 11, 30);
const LEAP_MARGIN_MS = 48 * 3_600_000;
const EXPRESSIONS_KEPT = 20_000;

const parsed = new Map<string, Cron>();

/** The first fire time strictly after an instant, or null when none is left. Throws on a rule that the checks refuse. */
export function nextFireTime(rule: FireTimes, afterMs: number): number | null {
  const fromMs = Math.max(Math.floor(afterMs) + 1, rule.startsAt ?? -Infinity);
  const atMs = firstFireTimeFrom(cronOf(rule.cronExpr), rule.timezone, fromMs);
  return atMs !== null && rule.endsAt !== null && atMs > rule.endsAt ? null : atMs;
}

/** The coming fire times, fewer than `count` when the schedule ends. */
export function previewFireTimes(rule: FireTimes, afterMs: number, count: number): PreviewedFireTime[] {
  const times: PreviewedFireTime[] = [];
  for (
    let at = nextFireTime(rule, afterMs);
    at !== null && times.length < count;
    at = nextFireTime(rule, at)
  ) {
    const note = noteOn(cronOf(rule.cronExpr), rule.timezone, at);
    times.push({ at, local: formatLocal(rule.timezone, at), ...(note === null ? {} : { note }) });
  }
  return times;
}

/** Walks from one span of constant offset to the next; inside a span a local time is one instant. */
function firstFireTimeFrom(cron: Cron, timezone: string, fromMs: number): number | null {
  for (let atMs = fromMs; atMs <= LAST_INSTANT_MS; ) {
    const span = offsetSpanAt(timezone, atMs);
    if (atMs === span.startMs && firesAsGapEnds(cron, span)) return atMs;

    // In a repeated hour a fixed time has fired already: look past the highest wall clock time seen so far.
    const seenMs = cron.wildcard ? -Infinity : span.startMs + span.offsetBeforeMs;
    const localMs = nextLocalMinute(cron, Math.max(atMs + span.offsetMs, seenMs));
    if (localMs === null) return null;
    const candidateMs = localMs - span.offsetMs;
    if (candidateMs < span.endMs) return candidateMs <= LAST_INSTANT_MS ? candidateMs : null;

    // A change of the clock must be looked at. Where the span merely ends, no change is within 36 hours of atMs, none
    // shifts by more than 24, and no local time before localMs matches: so all spans until close to it can be skipped.
    const isChange = span.offsetAfterMs !== span.offsetMs;
    atMs = isChange ? span.endMs : Math.max(span.endMs, candidateMs - LEAP_MARGIN_MS);
  }
  return null;
}

/** True when the clock jumped forward at the start of the span, over a time that the schedule names. */
function firesAsGapEnds(cron: Cron, span: OffsetSpan): boolean {
  if (cron.everyHour || span.offsetMs <= span.offsetBeforeMs) return false;
  const skippedMs = nextLocalMinute(cron, span.startMs + span.offsetBeforeMs);
  return skippedMs !== null && skippedMs < span.startMs + span.offsetMs;
}

function noteOn(cron: Cron, timezone: string, atMs: number): "dst_gap" | "dst_repeat" | null {
  const span = offsetSpanAt(timezone, atMs);
  if (atMs === span.startMs && firesAsGapEnds(cron, span)) return "dst_gap";
  const localMs = atMs + span.offsetMs;
  const isSecondTime = localMs < span.startMs + span.offsetBeforeMs;
  const isFirstTime = localMs >= span.endMs + span.offsetAfterMs;
  return isSecondTime || isFirstTime ? "dst_repeat" : null;
}

/** The expression as data; parsing takes 25 µs, so it is kept. */
export function cronOf(expression: string): Cron {
  let cron = parsed.get(expression);
  if (cron === undefined) {
    if (parsed.size >= EXPRESSIONS_KEPT) parsed.clear();
    cron = parseCron(expression);
    parsed.set(expression, cron);
  }
  return cron;
}
