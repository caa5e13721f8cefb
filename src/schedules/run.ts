/** A schedule at work: the job that a due time makes, and what becomes of all due times that have come. */
import { newId } from "../base/ids.ts";
import { DEFAULT_DEDUPE_WINDOW, type NewJob } from "../jobs/job.ts";
import { type FiringPolicy, planFiring } from "./missed.ts";
import type { Occurrence, Schedule } from "./schedule.ts";

/** Lines of the ledger, the jobs of those that fire, and the next due time: what one transaction writes. */
export interface Firing {
  /** The due time that the schedule was read with: a firing that was done already changes nothing. */
  readonly dueAt: number;
  readonly occurrences: readonly (Omit<Occurrence, "jobId"> & { readonly job: NewJob | null })[];
  readonly nextRunAt: number | null;
}

/**
 * What a transaction may weigh, so that deliveries never wait long for it: 100 jobs, or 1,000 lines without one, or some
 * 8 MB of payloads.
 */
export const MAX_WEIGHT = 1_000;
const JOB_WEIGHT = 10;
const LINE_WEIGHT = 1;
const WEIGHT_OF_MB = 125;

export function weightOf({ occurrences }: Firing): number {
  return occurrences.reduce((sum, line) => sum + lineWeight(line), 0);
}

function lineWeight({ job }: { readonly job: NewJob | null }): number {
  if (job === null) return LINE_WEIGHT;
  const length = [job, ...job.steps].reduce((sum, { payload }) => sum + (payload?.text.length ?? 0), 0);
  return JOB_WEIGHT + (length * WEIGHT_OF_MB) / 1e6;
}

/**
 * What becomes of each due time of a schedule up to now, by its rules. A long downtime comes in several firings, each a
 * whole step: it ends where the next one is armed. Since what fires comes last, a crash in between only means that the
 * rest is planned again, with the same result.
 */
export function firingsOf(
  schedule: Schedule,
  now: number,
  policy: FiringPolicy = schedule.onMissed,
): Firing[] {
  const dueAt = schedule.nextRunAt;
  if (dueAt === null) throw new Error(`schedule ${schedule.id} has no due time`);
  const plan = planFiring(schedule, policy, dueAt, now);
  const lines: Firing["occurrences"][number][] = [
    ...plan.missed.map((scheduledFor) => ({
      scheduledFor,
      outcome: "missed" as const,
      latenessMs: null,
      job: null,
    })),
    ...plan.fire.map(({ scheduledFor, outcome }) => ({
      scheduledFor,
      outcome,
      latenessMs: now - scheduledFor,
      job: jobOfSchedule(schedule, scheduledFor, now),
    })),
  ];
  const pieces = inPieces(lines);
  return pieces.map((occurrences, i) => ({
    dueAt: i === 0 ? dueAt : occurrences[0]!.scheduledFor,
    occurrences,
    nextRunAt: pieces[i + 1]?.[0]?.scheduledFor ?? plan.next,
  }));
}

/** In place of its firings, for a schedule whose times cannot be reckoned: it has no next run until they can. */
export function setAside({ nextRunAt }: Schedule, now: number): Firing {
  return { dueAt: nextRunAt ?? now, occurrences: [], nextRunAt: null };
}

/** At least one piece, which may be empty. */
function inPieces(lines: Firing["occurrences"]): Firing["occurrences"][number][][] {
  let piece: Firing["occurrences"][number][] = [];
  const pieces = [piece];
  let weight = 0;
  for (const line of lines) {
    weight += lineWeight(line);
    if (weight > MAX_WEIGHT && piece.length > 0) {
      piece = [];
      pieces.push(piece);
      weight = lineWeight(line);
    }
    piece.push(line);
  }
  return pieces;
}

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
