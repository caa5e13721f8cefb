/** Time zones: which names count, and how far a zone's wall clock is from UTC at an instant. */
import type { CronFault } from "./cron-check.ts";

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

// The tz database has no two changes of one zone closer than 3.98 days (Freetown, 1939; since 1970 it is 6.96 days). With
// probes three days apart there is at most one change between two of them, so none goes unseen.
const PROBE_MS = 3 * DAY_MS;
// How many windows of three days one zone keeps: about eight years.
const WINDOWS_KEPT = 1_000;

/**
 * A span of one offset from UTC. Each end is either a change of the clock, or lies at least 36 hours away from the
 * instant that was asked for. No zone has ever shifted its clock by more than a day (Samoa, 2011).
 */
export interface OffsetSpan {
  readonly startMs: number;
  readonly endMs: number;
  readonly offsetMs: number;
  /** Just before `startMs`; equal to `offsetMs` when the clock does not change there. */
  readonly offsetBeforeMs: number;
  /** From `endMs`; equal to `offsetMs` when the clock does not change there. */
  readonly offsetAfterMs: number;
}

interface Zone {
  /** As it was first written. */
  readonly timezone: string;
  readonly format: Intl.DateTimeFormat;
  readonly windows: Map<number, readonly OffsetSpan[]>;
}

/** By name in lower case, so that spellings do not add up. */
const zones = new Map<string, Zone>();
let lastUsed: Zone | null = null;

/** The span of one offset around an instant. Throws RangeError on a name that `checkTimezone` refuses. */
export function offsetSpanAt(timezone: string, atMs: number): OffsetSpan {
  const zone = zoneNamed(timezone);
  const index = Math.floor(atMs / PROBE_MS);
  let spans = zone.windows.get(index);
  if (spans === undefined) {
    if (zone.windows.size >= WINDOWS_KEPT) zone.windows.clear();
    spans = probeWindow(zone.format, index * PROBE_MS);
    zone.windows.set(index, spans);
  }
  for (const span of spans) if (atMs < span.endMs) return span;
  throw new RangeError(`no offset for ${timezone} at ${atMs}`);
}

/** The wall clock at an instant with its offset, as in RFC 3339: 2026-03-29T03:00:00+02:00. */
export function formatLocal(timezone: string, atMs: number): string {
  const { offsetMs } = offsetSpanAt(timezone, atMs);
  const minutes = Math.trunc(Math.abs(offsetMs) / 60_000);
  const hh = String(Math.trunc(minutes / 60)).padStart(2, "0");
  const mm = String(minutes % 60).padStart(2, "0");
  return `${new Date(atMs + offsetMs).toISOString().slice(0, 19)}${offsetMs < 0 ? "-" : "+"}${hh}:${mm}`;
}

/** Says what is wrong with a time zone name, or null. Any letter case will do, as in ECMA-402. */
export function checkTimezone(timezone: string): CronFault | null {
  const shown = JSON.stringify(timezone.slice(0, 64));
  if (timezone.trim() === "")
    return fault("The time zone is empty.", "Use UTC or an IANA name such as Europe/Berlin.");
  // Intl takes bare offsets, but they know no daylight saving and are not names.
  if (/^(?:(?:UTC|GMT)?[+-]\d{1,2}(?::?\d{2}){0,2}|Z)$/i.test(timezone) && !/^GMT[+-]0$/i.test(timezone)) {
    return fault(
      `${shown} is an offset, not a time zone.`,
      "Use an IANA name such as Europe/Berlin, or UTC.",
    );
  }
  // ICU also knows abbreviations and System V names that the tz database does not, and reads BST as Bangladesh.
  if (/^[a-z]{3}$/i.test(timezone) && !IANA_OF_THREE_LETTERS.has(timezone.toUpperCase())) {
    return fault(
      `${shown} is not an IANA time zone; abbreviations mean different zones in different places.`,
      "Use a name such as Europe/Berlin, or UTC.",
    );
  }
  if (!/^SystemV\//i.test(timezone) && isKnownToIntl(timezone)) return null;
  const near = similarName(timezone);
  return fault(
    `${shown} is not an IANA time zone.`,
    near === null ? "Use a name such as Europe/Berlin, or UTC." : `Did you mean ${near}?`,
  );
}

const IANA_OF_THREE_LETTERS: ReadonlySet<string> = new Set([
  "CET",
  "EET",
  "EST",
  "GMT",
  "HST",
  "MET",
  "MST",
  "PRC",
  "ROC",
  "ROK",
  "UCT",
  "UTC",
  "WET",
]);

function fault(wrong: string, right: string): CronFault {
  return { code: "invalid_timezone", detail: `${wrong} ${right}` };
}

function isKnownToIntl(timezone: string): boolean {
  try {
    // Not Intl.supportedValuesOf: it lists no aliases and not even UTC.
    new Intl.DateTimeFormat("en-US", { timeZone: timezone });
    return true;
  } catch {
    return false;
  }
}

/** "Berlin", "europe-berlin" and "America/NewYork" are near a name; "Mars/Olympus" is not. */
function similarName(timezone: string): string | null {
  const letters = (text: string): string => text.toLowerCase().replace(/[^a-z]/g, "");
  const wanted = letters(timezone);
  if (wanted.length < 4) return null;
  const names = Intl.supportedValuesOf("timeZone");
  return (
    names.find((name) => letters(name) === wanted) ??
    names.find((name) => letters(name.slice(name.lastIndexOf("/") + 1)) === wanted) ??
    null
  );
}

function zoneNamed(timezone: string): Zone {
  if (lastUsed?.timezone === timezone) return lastUsed;
  const name = timezone.toLowerCase();
  let zone = zones.get(name);
  if (zone === undefined) {
    // A formatter takes 50 µs to make and 26 kB to keep; there are about 600 names.
    const format = new Intl.DateTimeFormat("en-US", { timeZone: timezone, timeZoneName: "longOffset" });
    zone = { timezone, format, windows: new Map() };
    zones.set(name, zone);
  }
  lastUsed = zone;
  return zone;
}

/** The spans that touch a window of three days and the 36 hours on either side of it. */
function probeWindow(format: Intl.DateTimeFormat, windowStartMs: number): OffsetSpan[] {
  const spans: OffsetSpan[] = [];
  let probeMs = windowStartMs - PROBE_MS / 2;
  let startMs = probeMs;
  let offsetMs = readOffset(format, probeMs);
  let offsetBeforeMs = offsetMs;
  for (let probes = 0; probes < 2; probes++, probeMs += PROBE_MS) {
    const offsetAfterMs = readOffset(format, probeMs + PROBE_MS);
    if (offsetAfterMs === offsetMs) continue;
    const changeMs = findChange(format, probeMs, probeMs + PROBE_MS);
    spans.push({ startMs, endMs: changeMs, offsetMs, offsetBeforeMs, offsetAfterMs });
    [startMs, offsetBeforeMs, offsetMs] = [changeMs, offsetMs, offsetAfterMs];
  }
  spans.push({ startMs, endMs: probeMs, offsetMs, offsetBeforeMs, offsetAfterMs: offsetMs });
  return spans;
}

/** The instant in (fromMs, toMs] at which the offset changes, to the second. */
function findChange(format: Intl.DateTimeFormat, fromMs: number, toMs: number): number {
  const before = readOffset(format, fromMs);
  let lowSeconds = fromMs / 1_000;
  let highSeconds = toMs / 1_000;
  while (highSeconds - lowSeconds > 1) {
    const middle = Math.floor((lowSeconds + highSeconds) / 2);
    if (readOffset(format, middle * 1_000) === before) lowSeconds = middle;
    else highSeconds = middle;
  }
  return highSeconds * 1_000;
}

/** Reads "1/1/1970, GMT+01:00"; offsets before standard time have seconds, "GMT-00:44:30". */
function readOffset(format: Intl.DateTimeFormat, atMs: number): number {
  const text = format.format(atMs);
  const [hours = "0", minutes = "0", seconds = "0"] = text.slice(text.indexOf("GMT") + 4).split(":");
  const sizeMs = (Number(hours) * 3_600 + Number(minutes) * 60 + Number(seconds)) * 1_000;
  return text[text.indexOf("GMT") + 3] === "-" ? -sizeMs : sizeMs;
}
