/** The schedule as data, and its ledger. When it fires is in firing.ts. */
import type { Tenant } from "../base/tenant.ts";
import type { JobTemplate } from "../jobs/job.ts";

export const MISSED_POLICIES = ["skip", "once", "all"] as const;
export type MissedPolicy = (typeof MISSED_POLICIES)[number];

export const OVERLAP_POLICIES = ["allow", "skip"] as const;
export type OverlapPolicy = (typeof OVERLAP_POLICIES)[number];

export const OCCURRENCE_OUTCOMES = ["fired", "late", "missed", "skipped_overlap"] as const;
export type OccurrenceOutcome = (typeof OCCURRENCE_OUTCOMES)[number];

/**
 * Why a schedule has a next run, or none. `ended`: no time is left before `ends_at`. `invalid`: this version of Errand, or
 * of its time zone database, no longer takes the expression or the zone.
 */
export const SCHEDULE_STATUSES = ["scheduled", "paused", "ended", "invalid"] as const;
export type ScheduleStatus = (typeof SCHEDULE_STATUSES)[number];

/** What a user says of a schedule. */
export interface ScheduleSpec {
  readonly name: string | null;
  readonly cronExpr: string;
  readonly timezone: string;
  /** What each firing enqueues. */
  readonly job: JobTemplate;
  readonly onMissed: MissedPolicy;
  readonly onOverlap: OverlapPolicy;
  readonly startsAt: number | null;
  readonly endsAt: number | null;
  readonly paused: boolean;
}

/** Times are milliseconds since the epoch. */
export interface Schedule extends ScheduleSpec {
  readonly id: string;
  readonly tenant: Tenant;
  /** Null while paused, and when no due time is left. */
  readonly nextRunAt: number | null;
  readonly lastRunAt: number | null;
  readonly lastJobId: string | null;
  readonly createdAt: number;
  readonly updatedAt: number;
}

/** One line of the ledger: what became of one due time. */
export interface Occurrence {
  readonly scheduledFor: number;
  readonly outcome: OccurrenceOutcome;
  readonly jobId: string | null;
  readonly latenessMs: number | null;
}
