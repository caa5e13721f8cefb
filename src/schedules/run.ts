/** One run of a schedule: the job that a due time makes. */
import { newId } from "../base/ids.ts";
import { DEFAULT_DEDUPE_WINDOW, type NewJob } from "../jobs/job.ts";
import type { Schedule } from "./schedule.ts";

/** `scheduledFor` is the due time, null for a run that a person triggered. */
export function jobOfSchedule(schedule: Schedule, scheduledFor: number | null, now: number): NewJob {
  return {
    ...schedule.job,
    id: newId("job", now),
    runAt: now,
    dedupeKey: null,
    dedupeWindow: DEFAULT_DEDUPE_WINDOW,
    idempotencyKey: null,
    scheduleId: schedule.id,
    scheduledFor,
  };
}
