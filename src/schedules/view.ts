/** How users see a schedule and its ledger. */
import { formatTime, formatTimeOrNull } from "../base/clock.ts";
import { maskHeaders } from "../jobs/view.ts";
import { describeCron } from "./describe.ts";
import type { PreviewedFireTime } from "./firing.ts";
import { isSound } from "./revise.ts";
import type { Occurrence, Schedule, ScheduleStatus } from "./schedule.ts";

export function viewSchedule(schedule: Schedule) {
  const { job } = schedule;
  return {
    id: schedule.id,
    name: schedule.name,
    cron_expr: schedule.cronExpr,
    timezone: schedule.timezone,
    description: descriptionOf(schedule),
    status: statusOf(schedule),
    url: job.target?.url ?? null,
    method: job.target?.method ?? null,
    headers: job.target === null ? {} : maskHeaders(job.target.headers),
    payload: job.payload,
    max_attempts: job.rules.maxAttempts,
    timeout: job.rules.timeout,
    retry_delays: job.rules.retryDelays,
    no_retry_on: job.rules.noRetryOn,
    queue: job.queue,
    tags: job.tags,
    callback_url: job.callbackUrl,
    requires_approval: job.requiresApproval,
    approval_timeout: job.approvalTimeout,
    steps:
      job.steps.length === 0
        ? null
        : job.steps.map((step) => ({
            name: step.name,
            url: step.url,
            method: step.method,
            headers: maskHeaders(step.headers),
            payload: step.payload,
            max_attempts: step.maxAttempts,
            timeout: step.timeout,
            retry_delays: step.retryDelays,
            no_retry_on: step.noRetryOn,
            delay: step.delay,
            requires_approval: step.requiresApproval,
          })),
    on_missed: schedule.onMissed,
    on_overlap: schedule.onOverlap,
    starts_at: formatTimeOrNull(schedule.startsAt),
    ends_at: formatTimeOrNull(schedule.endsAt),
    paused: schedule.paused,
    next_run_at: formatTimeOrNull(schedule.nextRunAt),
    last_run_at: formatTimeOrNull(schedule.lastRunAt),
    last_job_id: schedule.lastJobId,
    created_at: formatTime(schedule.createdAt),
    updated_at: formatTime(schedule.updatedAt),
  };
}

/** One that this version of Errand does not take any more has no English but itself. */
function descriptionOf({ cronExpr }: Schedule): string {
  try {
    return describeCron(cronExpr);
  } catch {
    return cronExpr;
  }
}

/** Why there is a next run, or none. */
function statusOf(schedule: Schedule): ScheduleStatus {
  if (schedule.paused) return "paused";
  if (schedule.nextRunAt !== null) return "scheduled";
  return isSound(schedule) ? "ended" : "invalid";
}

export function viewFireTime({ at, local, note }: PreviewedFireTime) {
  return { at: formatTime(at), local, ...(note === undefined ? {} : { note }) };
}

export function viewOccurrence(occurrence: Occurrence) {
  return {
    scheduled_for: formatTime(occurrence.scheduledFor),
    outcome: occurrence.outcome,
    job_id: occurrence.jobId,
    lateness_ms: occurrence.latenessMs,
  };
}
