/** Durations as users write them: a whole number and one unit, `30s`, `5m`, `1h`, `1d`. */

const UNIT_MS = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;
const DURATION = /^(\d{1,9})([smhd])$/;

/** Milliseconds, or null when the text is not a duration. */
export function parseDuration(text: string): number | null {
  const match = DURATION.exec(text);
  if (match === null) return null;
  return Number(match[1]) * UNIT_MS[match[2] as keyof typeof UNIT_MS];
}

/** Milliseconds of a duration that was checked when it came in; anything else is a defect. */
export function durationMs(text: string): number {
  const ms = parseDuration(text);
  if (ms === null) throw new Error(`not a duration: ${JSON.stringify(text)}`);
  return ms;
}

/** A duration for a person to read, rounded to its largest unit: `1.5 s`, `40 s`, `5 min`, `1 h`. */
export function describeDuration(ms: number): string {
  if (ms < 1_000) return `${Math.round(ms)} ms`;
  if (ms < 10_000) return `${Number((ms / 1_000).toFixed(1))} s`;
  if (ms < 2 * UNIT_MS.m) return `${Math.round(ms / 1_000)} s`;
  if (ms < 2 * UNIT_MS.h) return `${Math.round(ms / UNIT_MS.m)} min`;
  if (ms < 2 * UNIT_MS.d) return `${Math.round(ms / UNIT_MS.h)} h`;
  return `${Math.round(ms / UNIT_MS.d)} days`;
}
