/** How users see a job: the contract's names, times as RFC 3339, secret-bearing header values masked. */

import type { Scope } from "../accounts/scopes.ts";
import { formatTime, formatTimeOrNull } from "../base/clock.ts";
import { RawJson } from "../base/json.ts";
import { isJson } from "../base/json-check.ts";
import { utf8Text } from "../base/utf8.ts";
import type { Attempt, Job, JobDetail, StepDetail, StoredResponse } from "./job.ts";
import { actionsOn, FINAL } from "./lifecycle.ts";
import type { Headers } from "./outcome.ts";
import { isSecretHeader, MASK } from "./secret-headers.ts";

/** The scope that each action on a job needs. */
const ACTION_SCOPES = { cancel: "write", approve: "approve", reject: "approve", retry: "write" } as const;

/** A job as in lists: all but its bodies and headers. */
export function viewListedJob(job: Job, scopes: readonly Scope[]) {
  return {
    id: job.id,
    status: job.status,
    url: job.target?.url ?? null,
    method: job.target?.method ?? null,
    queue: job.queue,
    tags: job.tags,
    max_attempts: job.rules.maxAttempts,
    attempts: job.attempts,
    timeout: job.rules.timeout,
    retry_delays: job.rules.retryDelays,
    no_retry_on: job.rules.noRetryOn,
    run_at: formatTime(job.runAt),
    created_at: formatTime(job.createdAt),
    updated_at: formatTime(job.updatedAt),
    started_at: formatTimeOrNull(job.startedAt),
    finished_at: formatTimeOrNull(job.finishedAt),
    response_code: job.responseCode,
    duration_ms: job.durationMs,
    last_error: job.lastError,
    last_error_code: job.lastErrorCode,
    next_retry_at: job.status === "pending" && job.attempts > 0 ? formatTimeOrNull(job.dueAt) : null,
    retries_remaining: retriesRemaining(job),
    dedupe_key: job.dedupeKey,
    deduplicated: false,
    idempotency_key: job.idempotencyKey,
    requires_approval: job.requiresApproval,
    approval_timeout: job.approvalTimeout,
    approved_at: formatTimeOrNull(job.approvedAt),
    approved_by: job.approvedBy,
    rejected_at: formatTimeOrNull(job.rejectedAt),
    rejected_by: job.rejectedBy,
    approval_note: job.approvalNote,
    callback_url: job.callbackUrl,
    callback: job.callback === null ? null : viewCallback(job.callback),
    // Undefined is left out of the JSON. Spreading an object in here instead would cost every enqueue dearly.
    schedule_id: job.scheduleId ?? undefined,
    scheduled_for: formatTimeOrNull(job.scheduledFor),
    mode: job.tenant.mode,
    actions: actionsOn(job.status).filter((action) => scopes.includes(ACTION_SCOPES[action])),
  };
}

/** A job with its bodies. */
export function viewJob(job: JobDetail, scopes: readonly Scope[], deduplicated = false) {
  const response = viewResponse(job.response);
  return {
    ...viewListedJob(job, scopes),
    payload: job.payload,
    headers: job.target === null ? {} : maskHeaders(job.target.headers),
    response_headers: response.response_headers,
    response_body: response.response_body,
    response_body_encoding: response.response_body_encoding,
    response_truncated: response.response_truncated,
    deduplicated,
    steps: job.steps.length === 0 ? null : job.steps.map((step, i) => viewStep(job, step, i)),
  };
}

export function viewAttempt(attempt: Attempt) {
  return {
    number: attempt.number,
    step: attempt.stepName,
    started_at: formatTime(attempt.startedAt),
    duration_ms: attempt.durationMs,
    response_code: attempt.response?.code ?? null,
    ...viewResponse(attempt.response),
    error: attempt.error,
    error_code: attempt.errorCode,
    decision: attempt.decision,
  };
}

function viewStep(job: JobDetail, step: StepDetail, position: number) {
  return {
    name: step.name,
    status: stepStatus(job, position),
    url: step.url,
    method: step.method,
    payload: step.payload,
    headers: maskHeaders(step.headers),
    max_attempts: step.maxAttempts,
    timeout: step.timeout,
    retry_delays: step.retryDelays,
    no_retry_on: step.noRetryOn,
    delay: step.delay,
    requires_approval: step.requiresApproval,
    approved_at: formatTimeOrNull(step.approvedAt),
    attempts: step.attempts,
    response_code: step.response?.code ?? null,
    ...viewResponse(step.response),
    duration_ms: step.durationMs,
    last_error: step.lastError,
  };
}

/** Steps before the current one are done, those after it have not begun, and the current one stands where the job does. */
function stepStatus(job: JobDetail, position: number): Job["status"] {
  if (position < job.step) return "completed";
  if (position === job.step) return job.status;
  return job.status === "cancelled" ? "cancelled" : "pending";
}

function viewCallback(callback: NonNullable<Job["callback"]>) {
  return {
    status: callback.status,
    attempts: callback.attempts,
    response_code: callback.responseCode,
    last_error: callback.lastError,
    next_retry_at: formatTimeOrNull(callback.nextRetryAt),
  };
}

/** Attempts that may still come by themselves after the one that is due or under way. */
function retriesRemaining(job: Job): number {
  if (FINAL.has(job.status)) return 0;
  const used = job.status === "active" ? job.spent + 1 : Math.max(1, job.spent);
  return Math.max(0, job.task.maxAttempts - used);
}

/** `response_*` of a job or an attempt: a JSON value where the target sent JSON, else text, else base64. */
function viewResponse(response: StoredResponse | null) {
  if (response === null) return NO_RESPONSE;
  return viewed.get(response) ?? newView(response);
}

/** Large responses that were looked at ahead. */
const viewed = new WeakMap<StoredResponse, ReturnType<typeof newView>>();
const LARGE_BYTES = 64 * 1024;

/**
 * Looks at a large response before it is viewed, and says whether it is one: who has twenty of them to view, at up to
 * 30 ms each, can let others have their turn in between.
 */
export function viewAhead(response: StoredResponse | null): boolean {
  if (response === null || response.body.length < LARGE_BYTES) return false;
  viewed.set(response, newView(response));
  return true;
}

function newView(response: StoredResponse) {
  const text = utf8Text(response.body, response.truncated);
  return {
    response_headers: maskHeaders(response.headers),
    response_body: text === null ? Buffer.from(response.body).toString("base64") : viewText(response, text),
    response_body_encoding: text === null ? ("base64" as const) : undefined,
    response_truncated: response.truncated,
  };
}

const NO_RESPONSE = {
  response_headers: null,
  response_body: null,
  response_body_encoding: undefined,
  response_truncated: false,
};

function viewText({ headers, truncated }: StoredResponse, text: string): RawJson | string | null {
  if (text === "") return null;
  const isJsonType = /[/+]json\b/i.test(headers["content-type"] ?? "");
  return isJsonType && !truncated && isJson(text) ? new RawJson(text) : text;
}

export function maskHeaders(headers: Headers): Record<string, string> {
  return Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [name, isSecretHeader(name) ? MASK : value]),
  );
}
