/**
 * THE table: which state follows which event, and what else changes with it. Every transition of a job is one of the
 * functions below; the store writes what they answer, guarded by the state and attempt that they started from.
 */
import { formatTime } from "../base/clock.ts";
import { describeDuration, durationMs } from "../base/duration.ts";
import { Problem, type ProblemCode } from "../base/errors.ts";
import type { Attempt, Job, JobStatus, NewJob, Step } from "./job.ts";
import type { ErrorCode, Outcome } from "./outcome.ts";
import { finalBecause, isSuccess, retryAfterMs, retryWaitMs } from "./retry.ts";

export const EVENTS = [
  "begin",
  "complete",
  "advance",
  "retry_later",
  "fail",
  "interrupt",
  "release",
  "approve",
  "reject",
  "cancel",
  "retry",
] as const;
export type JobEvent = (typeof EVENTS)[number];

/** What is not in the table cannot happen. Two states behind one event: the second is the one that waits for a person. */
export const LIFECYCLE: Readonly<Record<JobStatus, Partial<Record<JobEvent, readonly JobStatus[]>>>> = {
  pending: { begin: ["active"], cancel: ["cancelled"] },
  active: {
    complete: ["completed"],
    advance: ["pending", "awaiting_approval"],
    retry_later: ["pending"],
    fail: ["failed"],
    interrupt: ["pending", "failed"],
    release: ["pending"],
  },
  awaiting_approval: { approve: ["pending"], reject: ["cancelled"], cancel: ["cancelled"] },
  completed: {},
  failed: { retry: ["pending", "awaiting_approval"] },
  cancelled: { retry: ["pending", "awaiting_approval"] },
};

/** States that nothing but a person's retry leaves. */
export const FINAL: ReadonlySet<JobStatus> = new Set(["completed", "failed", "cancelled"]);

/** A job that killed the process this often is not tried again. */
export const MAX_DEATHS = 3;

/** What a transition changes. Only these fields of a job ever change, and only together with its status. */
export type Changes = Partial<
  Pick<
    Job,
    | "step"
    | "dueAt"
    | "attempts"
    | "spent"
    | "deaths"
    | "startedAt"
    | "finishedAt"
    | "responseCode"
    | "durationMs"
    | "lastError"
    | "lastErrorCode"
    | "approvedAt"
    | "approvedBy"
    | "rejectedAt"
    | "rejectedBy"
    | "approvalNote"
  >
> & { readonly status: JobStatus; readonly updatedAt: number };

/** A transition that ends an attempt: the changes of the job, and the attempt's line in the ledger. */
export interface Settlement {
  readonly event: JobEvent;
  readonly changes: Changes;
  readonly attempt: Attempt;
}

/** Throws a 409 that names the state when the table does not have the event. */
function expect(job: Job, event: JobEvent, code: ProblemCode, detail: string): void {
  if (LIFECYCLE[job.status][event] === undefined)
    throw new Problem(code, `The job is ${job.status}; ${detail}`);
}

/** What a new job begins as: pending at its time, or waiting for a person. */
export function firstState(job: NewJob, now: number): { status: JobStatus; dueAt: number | null } {
  if (job.requiresApproval || (job.steps[0]?.requiresApproval ?? false)) return awaiting(job, now);
  return {
    status: "pending",
    dueAt: startOf({ step: 0, runAt: job.runAt }, job.steps[0] ?? null, job.runAt),
  };
}

// ── Attempts ────────────────────────────────────────────────────────────────────────────────────────────────────────

/** pending → active: the dispatcher begins an attempt. */
export function begin(job: Job, now: number): Changes {
  return { status: "active", updatedAt: now, startedAt: now, dueAt: null, attempts: job.attempts + 1 };
}

/** active → whatever the outcome asks for. `next` is the step after the current one, if there is one. */
export function settle(
  job: Job,
  stepName: string | null,
  next: Step | null,
  outcome: Outcome,
  now: number,
): Settlement {
  const error = errorOf(outcome);
  const changes = {
    updatedAt: now,
    durationMs: outcome.durationMs,
    responseCode: outcome.kind === "response" ? outcome.code : null,
    lastError: error.message,
    lastErrorCode: error.code,
    spent: job.spent + 1,
  };
  const close = (
    event: JobEvent,
    more: Pick<Changes, "status"> & Partial<Changes>,
    decision: string,
  ): Settlement => ({
    event,
    changes: { ...changes, ...more },
    attempt: {
      ...attemptOf(job, stepName),
      ...resultOf(outcome),
      error: error.message,
      errorCode: error.code,
      decision,
    },
  });

  if (isSuccess(outcome)) {
    if (next !== null) return close("advance", advance(job, next, now), decisionToAdvance(next));
    return close(
      "complete",
      { status: "completed", finishedAt: now },
      "Completed: the target answered with success.",
    );
  }
  const why = error.message ?? "";
  const final = finalBecause(job.task, outcome);
  if (final !== null) return close("fail", ended("failed", now), `Failed without a retry: ${final}. ${why}`);
  const left = job.task.maxAttempts - changes.spent;
  if (left <= 0)
    return close(
      "fail",
      ended("failed", now),
      `Failed: attempt ${changes.spent} of ${job.task.maxAttempts} was the last. ${why}`,
    );
  const asked = outcome.kind === "response" ? retryAfterMs(outcome.code, outcome.headers, now) : 0;
  const waitMs = retryWaitMs(job.task, changes.spent, asked);
  const reason = asked > 0 ? "; the target asked for a wait with Retry-After" : "";
  return close(
    "retry_later",
    { status: "pending", dueAt: now + waitMs },
    `Retry in ${describeDuration(waitMs)}, at ${formatTime(now + waitMs)}, ${left} of ${job.task.maxAttempts} attempts left${reason}. ${why}`,
  );
}

/** active → pending, or failed after {@link MAX_DEATHS}: the process died during the attempt. The budget is not touched. */
export function interrupt(job: Job, stepName: string | null, now: number): Settlement {
  const deaths = job.deaths + 1;
  const error = "The service stopped during the attempt; whether the target was reached is not known.";
  const fatal = deaths >= MAX_DEATHS;
  const changes: Changes = {
    updatedAt: now,
    deaths,
    responseCode: null,
    durationMs: null,
    lastError: error,
    lastErrorCode: "interrupted",
    ...(fatal ? ended("failed", now) : { status: "pending" as const, dueAt: now }),
  };
  const decision = fatal
    ? `Failed: the service died ${deaths} times during attempts of this job.`
    : "Delivered again at once: the service stopped during the attempt. It does not count against max_attempts.";
  return {
    event: "interrupt",
    changes,
    attempt: {
      ...attemptOf(job, stepName),
      durationMs: null,
      response: null,
      error,
      errorCode: "interrupted",
      decision,
    },
  };
}

/** active → pending: a shutdown did not wait for the attempt any longer. Counts neither as a death nor as an attempt spent. */
export function release(job: Job, stepName: string | null, now: number): Settlement {
  const error = "The service was shut down before the target answered.";
  return {
    event: "release",
    changes: {
      status: "pending",
      updatedAt: now,
      dueAt: now,
      responseCode: null,
      durationMs: null,
      lastError: error,
      lastErrorCode: "interrupted",
    },
    attempt: {
      ...attemptOf(job, stepName),
      durationMs: null,
      response: null,
      error,
      errorCode: "interrupted",
      decision:
        "Delivered again at the next start: the service was shut down. It does not count against max_attempts.",
    },
  };
}

function advance(job: Job, next: Step, now: number): Pick<Changes, "status"> & Partial<Changes> {
  // What the job says of its attempts and its response it says of the current step, which has none yet.
  const fresh = { step: job.step + 1, attempts: 0, spent: 0, responseCode: null, durationMs: null };
  if (next.requiresApproval && next.approvedAt === null) return { ...fresh, ...awaiting(job, now) };
  return { ...fresh, status: "pending", dueAt: startOf({ ...job, ...fresh }, next, now) };
}

function decisionToAdvance(next: Step): string {
  if (next.requiresApproval && next.approvedAt === null) return `Done; step ${next.name} waits for approval.`;
  return next.delay === null
    ? `Done; step ${next.name} is next.`
    : `Done; step ${next.name} is next, in ${next.delay}.`;
}

// ── People ──────────────────────────────────────────────────────────────────────────────────────────────────────────

/** awaiting_approval → pending. `run_at` still holds; a step's delay counts from the approval. */
export function approve(job: Job, step: Step | null, by: string, note: string | null, now: number): Changes {
  expect(job, "approve", "not_approvable", "only a job that is awaiting_approval can be approved.");
  const approval = { approvedAt: now, approvedBy: by, approvalNote: note };
  // A job that was rejected, retried and approved now is no rejected one.
  const rejection = { rejectedAt: null, rejectedBy: null };
  return { status: "pending", updatedAt: now, dueAt: startOf(job, step, now), ...approval, ...rejection };
}

/** awaiting_approval → cancelled, by a person or, when `approval_timeout` has passed, by `system`. */
export function reject(job: Job, by: string, note: string | null, now: number): Changes {
  expect(job, "reject", "not_approvable", "only a job that is awaiting_approval can be rejected.");
  return { ...ended("cancelled", now), updatedAt: now, rejectedAt: now, rejectedBy: by, approvalNote: note };
}

export function cancel(job: Job, now: number): Changes {
  expect(
    job,
    "cancel",
    "not_cancellable",
    "only a job that is pending or awaiting_approval can be cancelled.",
  );
  return { ...ended("cancelled", now), updatedAt: now };
}

/** failed, cancelled → pending with a new budget, or back to waiting when the approval it needs was never given. */
export function retry(job: Job, step: Step | null, now: number): Changes {
  expect(job, "retry", "not_retryable", "only a job that is failed or cancelled can be retried.");
  const fresh = { updatedAt: now, spent: 0, deaths: 0, finishedAt: null };
  if (needsApproval(job, step)) return { ...fresh, ...awaiting(job, now) };
  return { ...fresh, status: "pending", dueAt: now };
}

/** Whether the current step (or the plain job) must not run before a person said so. */
function needsApproval(
  job: Pick<Job, "step" | "requiresApproval" | "approvedAt">,
  step: Step | null,
): boolean {
  const given = step === null ? job.approvedAt : step.approvedAt;
  const required = (job.step === 0 && job.requiresApproval) || (step?.requiresApproval ?? false);
  return required && given === null;
}

/** What a person may do to a job in this state, in the words of the API. */
export function actionsOn(status: JobStatus): readonly ("cancel" | "approve" | "reject" | "retry")[] {
  return (["cancel", "approve", "reject", "retry"] as const).filter(
    (action) => LIFECYCLE[status][action] !== undefined,
  );
}

// ── Parts ───────────────────────────────────────────────────────────────────────────────────────────────────────────

function awaiting(job: Pick<Job, "approvalTimeout">, now: number) {
  const dueAt = job.approvalTimeout === null ? null : now + durationMs(job.approvalTimeout);
  return { status: "awaiting_approval" as const, dueAt };
}

function ended(status: "failed" | "cancelled", now: number) {
  return { status, dueAt: null, finishedAt: now, updatedAt: now };
}

/** When the current step, or the plain job, is due from `now` on: at `run_at` if it is the first, and after the step's delay. */
function startOf(job: Pick<Job, "step" | "runAt">, step: Pick<Step, "delay"> | null, now: number): number {
  const from = job.step === 0 ? Math.max(job.runAt, now) : now;
  return step?.delay == null ? from : from + durationMs(step.delay);
}

function attemptOf(
  job: Job,
  stepName: string | null,
): Pick<Attempt, "number" | "step" | "stepName" | "startedAt"> {
  return { number: job.attempts, step: job.step, stepName, startedAt: job.startedAt ?? job.updatedAt };
}

function resultOf(outcome: Outcome): Pick<Attempt, "durationMs" | "response"> {
  return { durationMs: outcome.durationMs, response: outcome.kind === "response" ? outcome : null };
}

function errorOf(outcome: Outcome): { code: ErrorCode | null; message: string | null } {
  if (outcome.kind === "failure") return { code: outcome.code, message: outcome.message };
  if (isSuccess(outcome)) return { code: null, message: null };
  const hint = outcome.code >= 300 && outcome.code <= 399 ? "; redirects are not followed" : "";
  return { code: "http_status", message: `The target answered ${outcome.code}${hint}.` };
}
