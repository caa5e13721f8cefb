/** A new job as it stands the moment it is created, without reading it back. */
import type { Tenant } from "../base/tenant.ts";
import type { JobDetail, NewJob, NewStep, Task } from "./job.ts";
import { firstState } from "./lifecycle.ts";

export function createdJob(tenant: Tenant, job: NewJob, now: number): JobDetail {
  const task = job.target === null ? taskOf(job.steps[0]) : { ...job.target, ...job.rules };
  if (task === null) throw new Error(`job ${job.id} has neither a target nor a step`);
  const { status, dueAt } = firstState(job, now);
  return {
    id: job.id,
    tenant,
    status,
    dueAt,
    queue: job.queue,
    tags: job.tags,
    target: job.target,
    rules: job.rules,
    task,
    step: 0,
    runAt: job.runAt,
    attempts: 0,
    spent: 0,
    deaths: 0,
    createdAt: now,
    updatedAt: now,
    startedAt: null,
    finishedAt: null,
    responseCode: null,
    durationMs: null,
    lastError: null,
    lastErrorCode: null,
    dedupeKey: job.dedupeKey,
    idempotencyKey: job.idempotencyKey,
    requiresApproval: job.requiresApproval,
    approvalTimeout: job.approvalTimeout,
    approvedAt: null,
    approvedBy: null,
    rejectedAt: null,
    rejectedBy: null,
    approvalNote: null,
    callbackUrl: job.callbackUrl,
    callback: null,
    scheduleId: job.scheduleId,
    scheduledFor: job.scheduledFor,
    payload: job.payload,
    response: null,
    steps: job.steps.map((step) => ({
      ...step,
      approvedAt: null,
      attempts: 0,
      response: null,
      durationMs: null,
      lastError: null,
    })),
  };
}

function taskOf(step: NewStep | undefined): Task | null {
  if (step === undefined) return null;
  const { url, method, headers, maxAttempts, timeout, retryDelays, noRetryOn } = step;
  return { url, method, headers, maxAttempts, timeout, retryDelays, noRetryOn };
}
