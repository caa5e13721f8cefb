/** How many attempts an origin may have under way: the rule that keeps targets which hang from taking every place. */
import type { Outcome } from "../jobs/outcome.ts";

export interface LaneLimits {
  /** Attempts at once, over all. */
  readonly total: number;
  /** Attempts at once at one origin. */
  readonly perOrigin: number;
}

/**
 * What is known of an origin. quick: its latest attempt ended within a second, whatever came of it. slow: that was
 * answered, but later. new: nothing yet, or the latest attempt came to nothing. silent: new or quick, and nothing was
 * heard of the attempts under way for a second.
 */
export type Standing = "quick" | "slow" | "new" | "silent";

/** An attempt that ends within this gives its place back soon enough to be in nobody's way. */
export const QUICK_MS = 1_000;

/** What an attempt has shown. Null stands for one that a shutdown cut off. */
export function standingAfter(outcome: Outcome | null): Exclude<Standing, "silent"> {
  if (outcome === null) return "new";
  if (outcome.durationMs <= QUICK_MS) return "quick";
  return outcome.kind === "response" ? "slow" : "new";
}

/** What is going on at the moment. */
export interface Traffic {
  /** Places that are taken, over all. */
  readonly taken: number;
  /** Origins with due jobs or attempts under way. */
  readonly contending: number;
}

/**
 * The attempts that an origin may have under way, of which it has `own` now.
 *
 * Each may have one, so that it can show what it is, or a few while hardly anything else is under way. Those that answer
 * use their own limit as long as half of the places are free, and share the other half equally. Those that stay silent
 * may still be slow rather than dead: they share a quarter. So hundreds of dead targets hold a place each, and one that
 * takes minutes gets its limit after a second.
 */
export function placesFor(
  standing: Standing,
  { total, perOrigin }: LaneLimits,
  { taken, contending }: Traffic,
  own: number,
): number {
  const within = (places: number) => Math.max(1, Math.min(perOrigin, Math.floor(places)));
  const shareOf = (places: number) => within(places / Math.max(1, contending));
  if (standing === "new") return within(total / 64 - (taken - own));
  if (standing === "silent") return taken < total / 4 ? shareOf(total / 4) : 1;
  return taken < total / 2 ? perOrigin : shareOf(total / 2);
}

/** Places that only quick origins may take: they pass through these even when everything else hangs. */
export function reserveOf({ total }: LaneLimits): number {
  return Math.floor(total / 128);
}
