/** What to do with the due times that have come: which fire, which are missed, and when to look again. */
import { cronOf, type FireTimes, nextFireTime } from "./firing.ts";
import type { MissedPolicy } from "./schedule.ts";

export interface FiringPlan {
  /** Oldest first. `late` when it fires more than 60 s after its time. */
  readonly fire: readonly { readonly scheduledFor: number; readonly outcome: "fired" | "late" }[];
  /** Oldest first, ms since the epoch: one ledger row each. */
  readonly missed: readonly number[];
  /** Due times before this instant are missed too and get no rows, since they would be over 100,000; else null. */
  readonly unrecordedBefore: number | null;
  /** The first due time after now, or null when none is left. */
  readonly next: number | null;
}

/** `none`: no due time makes a job, since the service is held; on_missed knows only the others. */
export type FiringPolicy = MissedPolicy | "none";

/** A run is late when it fires more than this after its time. */
export const LATE_AFTER_MS = 60_000;
/** The most jobs that `all` makes at once. */
export const MAX_CATCH_UP = 1_000;
/** About how many due times a plan names one by one: 69 days of a minutely schedule, 11 years of an hourly one. */
export const MAX_RECORDED = 100_000;

const DAY_MS = 86_400_000;

/**
 * Decides every due time from `dueAt`, the first that is undecided, to `nowMs`.
 *
 * A due time of at most 60 s ago is on time; the older ones are overdue. `skip` fires what is on time. `once` makes one job
 * for all that is overdue, by firing the latest due time; that one may itself be on time, and then no late one fires beside
 * it. `all` fires the latest 1,000. With nothing overdue every policy fires all. What does not fire is missed.
 */
export function planFiring(rule: FireTimes, policy: FiringPolicy, dueAt: number, nowMs: number): FiringPlan {
  const { due, unrecordedBefore, next } = dueTimes(rule, dueAt, nowMs);
  const onTime = due.filter((at) => nowMs - at <= LATE_AFTER_MS).length;
  const firstToFire = due.length - howManyFire(policy, due.length, onTime);
  const fire = due.slice(firstToFire).map((scheduledFor) => ({
    scheduledFor,
    outcome: nowMs - scheduledFor > LATE_AFTER_MS ? ("late" as const) : ("fired" as const),
  }));
  return { fire, missed: due.slice(0, firstToFire), unrecordedBefore, next };
}

function howManyFire(policy: FiringPolicy, due: number, onTime: number): number {
  if (policy === "none") return 0;
  if (due === onTime) return due;
  switch (policy) {
    case "skip":
      return onTime;
    case "once":
      return 1;
    case "all":
      return Math.min(due, MAX_CATCH_UP);
  }
}

/**
 * The due times from `dueAt` to `nowMs`, or the latest of them when there are too many to name. Years of a minutely
 * schedule are then not walked through: it starts as far back as `MAX_RECORDED` times would reach, and further where
 * the expression leaves out so many days that less than `all` may fire was found.
 */
function dueTimes(
  rule: FireTimes,
  dueAt: number,
  nowMs: number,
): { due: number[]; unrecordedBefore: number | null; next: number | null } {
  // Taken as it is: it was promised, even if a new tz database would now name another instant.
  const first = rule.endsAt !== null && dueAt > rule.endsAt ? null : dueAt;
  for (let days = MAX_RECORDED / cronOf(rule.cronExpr).timesPerDay; ; days *= 2) {
    const fromMs = Math.max(dueAt, nowMs - days * DAY_MS);
    const due: number[] = [];
    let at = fromMs > dueAt ? nextFireTime(rule, fromMs - 1) : first;
    for (; at !== null && at <= nowMs; at = nextFireTime(rule, at)) due.push(at);
    if (fromMs <= dueAt) return { due, unrecordedBefore: null, next: at };
    if (due.length >= MAX_CATCH_UP) return { due, unrecordedBefore: due[0] ?? fromMs, next: at };
  }
}
