/** When a failed attempt is followed by another: the backoff, `retry_delays`, `Retry-After` and `no_retry_on`. */
import { durationMs } from "../base/duration.ts";
import type { RetryRules } from "./job.ts";
import type { Headers, Outcome } from "./outcome.ts";

const BACKOFF_BASE_MS = 10_000;
const BACKOFF_MAX_MS = 3_600_000;

/** Statuses whose `Retry-After` is heard (RFC 9110 §15.6.4, RFC 6585 §4). */
const HEARS_RETRY_AFTER = new Set([429, 503]);

/**
 * The wait in milliseconds before retry `n`, counted from 1: `min(10 s · 2^n, 1 h)`, so 20 s, 40 s, 80 s … 1 h.
 */
export function backoffMs(n: number): number {
  return Math.min(BACKOFF_BASE_MS * 2 ** n, BACKOFF_MAX_MS);
}

/** The wait before retry `n`, by the job's own delays where it has some, lengthened by what the target asked for. */
export function retryWaitMs(rules: RetryRules, n: number, askedMs: number): number {
  const delays = rules.retryDelays;
  const own = delays === null ? backoffMs(n) : durationMs(delays[Math.min(n, delays.length) - 1]!);
  return Math.max(own, Math.min(askedMs, BACKOFF_MAX_MS));
}

/** Milliseconds that the target asked for with `Retry-After` (RFC 9110 §10.2.3: seconds or an HTTP date), else 0. */
export function retryAfterMs(code: number, headers: Headers, nowMs: number): number {
  const value = headers["retry-after"]?.trim();
  if (value === undefined || !HEARS_RETRY_AFTER.has(code)) return 0;
  if (/^\d+$/.test(value)) return Number(value) * 1_000;
  const at = Date.parse(value);
  return Number.isNaN(at) ? 0 : Math.max(0, at - nowMs);
}

export function isSuccess(outcome: Outcome): boolean {
  return outcome.kind === "response" && outcome.code >= 200 && outcome.code <= 299;
}

/** Errors that no later attempt can mend: the address stays blocked, the reference stays empty. */
const FINAL_FAILURES = new Set(["blocked_target", "unresolved_reference"]);

/** Why this outcome may not be tried again, as the middle of a sentence, or null when it may. */
export function finalBecause(rules: RetryRules, outcome: Outcome): string | null {
  if (outcome.kind === "failure")
    return FINAL_FAILURES.has(outcome.code) ? `${outcome.code} is never retried` : null;
  const { code } = outcome;
  const named = rules.noRetryOn.find((entry) => entry === code || entry === `${Math.floor(code / 100)}xx`);
  return named === undefined ? null : `no_retry_on names ${named}`;
}
