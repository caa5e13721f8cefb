/** What a change to a schedule does to its next run. Pure: the store writes the schedule that comes back. */
import { isDeepStrictEqual } from "node:util";
import { checkCron } from "./cron-check.ts";
import { nextFireTime } from "./firing.ts";
import type { Schedule, ScheduleSpec } from "./schedule.ts";
import { checkTimezone } from "./zone.ts";

/**
 * Whether the times of a schedule can be reckoned. What is stored was sound when it was written; a newer Errand may not
 * take the expression any more, and another time zone database may not know the zone.
 */
export function isSound({ cronExpr, timezone }: Pick<ScheduleSpec, "cronExpr" | "timezone">): boolean {
  return checkCron(cronExpr) === null && checkTimezone(timezone) === null;
}

/** When a schedule that is new, or was changed now, runs first. Times up to now are over: they are never made up for. */
export function firstRun(spec: ScheduleSpec, now: number): number | null {
  return spec.paused || !isSound(spec) ? null : nextFireTime(spec, now);
}

/** True when a due time has come that is not decided yet. It falls under the schedule as it stands: decide it first. */
export function isDue(schedule: Schedule, now: number): boolean {
  return schedule.nextRunAt !== null && schedule.nextRunAt <= now;
}

/** The schedule as `spec` wants it. The same object when nothing differs; a next run stays unless what decides it differs. */
export function revise(schedule: Schedule, spec: ScheduleSpec, now: number): Schedule {
  const before = specOfSchedule(schedule);
  if (isDeepStrictEqual(before, specOfSchedule(spec))) return schedule;
  const isSameTiming = TIMING.every((field) => before[field] === spec[field]);
  return {
    ...schedule,
    ...spec,
    nextRunAt: isSameTiming ? schedule.nextRunAt : firstRun(spec, now),
    updatedAt: now,
  };
}

const TIMING = ["cronExpr", "timezone", "startsAt", "endsAt", "paused"] as const;

function specOfSchedule(from: ScheduleSpec): ScheduleSpec {
  const { name, cronExpr, timezone, job, onMissed, onOverlap, startsAt, endsAt, paused } = from;
  return { name, cronExpr, timezone, job, onMissed, onOverlap, startsAt, endsAt, paused };
}

/** A next run where it is missing, or was reckoned by a clock that has been set back since. The same object if neither. */
export function rearm(schedule: Schedule, now: number): Schedule {
  if (schedule.paused) return schedule;
  const nextRunAt = nextFireTime(schedule, now);
  const isRight = nextRunAt === null || (schedule.nextRunAt !== null && schedule.nextRunAt <= nextRunAt);
  return isRight ? schedule : { ...schedule, nextRunAt };
}
