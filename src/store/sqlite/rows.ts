/** Rows of jobs, steps and attempts, and what they stand for. */
import { RawJson } from "../../base/json.ts";
import type { SecretBox } from "../../base/secret-box.ts";
import type {
  Attempt,
  Callback,
  Job,
  JobStatus,
  Method,
  RetryRules,
  Step,
  StoredResponse,
  Target,
} from "../../jobs/job.ts";
import type { ErrorCode, Headers } from "../../jobs/outcome.ts";
import { isSecretHeader } from "../../jobs/secret-headers.ts";
import type { Directory } from "./directory.ts";

interface RulesRow {
  max_attempts: number;
  timeout: string;
  retry_delays: string | null;
  no_retry_on: string | null;
}

export interface JobRow extends RulesRow {
  seq: number;
  id: string;
  tenant: number;
  queue: number;
  /** Where it waits: set while it is pending. */
  lane: number | null;
  callback_of: string | null;
  status: JobStatus;
  url: string | null;
  method: Method;
  headers: string | null;
  tags: string | null;
  step: number;
  step_count: number;
  run_at: number;
  due_at: number | null;
  attempts: number;
  spent: number;
  deaths: number;
  created_at: number;
  updated_at: number;
  started_at: number | null;
  finished_at: number | null;
  response_code: number | null;
  duration_ms: number | null;
  last_error: string | null;
  last_error_code: ErrorCode | null;
  dedupe_key: string | null;
  idempotency_key: string | null;
  requires_approval: number;
  approval_timeout: string | null;
  approved_at: number | null;
  approved_by: string | null;
  rejected_at: number | null;
  rejected_by: string | null;
  approval_note: string | null;
  callback_url: string | null;
  schedule_id: string | null;
  scheduled_for: number | null;
  dedupe_until: number | null;
}

export interface StepRow extends RulesRow {
  job: number;
  position: number;
  name: string;
  url: string;
  method: Method;
  headers: string | null;
  payload: string | null;
  delay: string | null;
  requires_approval: number;
  approved_at: number | null;
}

export interface AttemptRow {
  job: number;
  step: number;
  number: number;
  started_at: number;
  duration_ms: number | null;
  code: number | null;
  headers: string | null;
  body: Uint8Array | null;
  truncated: number;
  error: string | null;
  error_code: ErrorCode | null;
  decision: string;
}

/** Turns rows into what they stand for. Holds the box, since secret-bearing headers are sealed in the file. */
export class Rows {
  private readonly directory: Directory;
  private readonly box: SecretBox;

  constructor(directory: Directory, box: SecretBox) {
    this.directory = directory;
    this.box = box;
  }

  /** `step` is the row of the current step of a pipeline, null for a plain job. */
  job(row: JobRow, step: StepRow | null, callback: Callback | null = null): Job {
    const rules = rulesOf(row);
    const target: Target | null =
      row.url === null ? null : { url: row.url, method: row.method, headers: this.openHeaders(row.headers) };
    const current = target ?? (step === null ? null : this.targetOf(step));
    if (current === null) throw new Error(`job ${row.id} has neither a target nor step ${row.step}`);
    return {
      id: row.id,
      tenant: this.directory.tenant(row.tenant),
      status: row.status,
      queue: this.directory.queue(row.queue).name,
      tags: row.tags === null ? NONE : (JSON.parse(row.tags) as string[]),
      target,
      rules,
      task: step === null ? { ...current, ...rules } : { ...current, ...rulesOf(step) },
      step: row.step,
      runAt: row.run_at,
      dueAt: row.due_at,
      attempts: row.attempts,
      spent: row.spent,
      deaths: row.deaths,
      createdAt: row.created_at,
      updatedAt: row.updated_at,
      startedAt: row.started_at,
      finishedAt: row.finished_at,
      responseCode: row.response_code,
      durationMs: row.duration_ms,
      lastError: row.last_error,
      lastErrorCode: row.last_error_code,
      dedupeKey: row.dedupe_key,
      idempotencyKey: row.idempotency_key,
      requiresApproval: row.requires_approval === 1,
      approvalTimeout: row.approval_timeout,
      approvedAt: row.approved_at,
      approvedBy: row.approved_by,
      rejectedAt: row.rejected_at,
      rejectedBy: row.rejected_by,
      approvalNote: row.approval_note,
      callbackUrl: row.callback_url,
      callback,
      scheduleId: row.schedule_id,
      scheduledFor: row.scheduled_for,
    };
  }

  step(row: StepRow): Step {
    return {
      ...this.targetOf(row),
      ...rulesOf(row),
      name: row.name,
      payload: row.payload === null ? null : new RawJson(row.payload),
      delay: row.delay,
      requiresApproval: row.requires_approval === 1,
      approvedAt: row.approved_at,
    };
  }

  /** Headers as they are stored: null for none, the values of secret-bearing ones sealed. */
  sealHeaders(headers: Headers): string | null {
    const entries = Object.entries(headers);
    if (entries.length === 0) return null;
    return JSON.stringify(
      Object.fromEntries(
        entries.map(([name, value]) => [name, isSecretHeader(name) ? this.box.seal(value) : value]),
      ),
    );
  }

  openHeaders(text: string | null): Headers {
    if (text === null) return NO_HEADERS;
    const headers = JSON.parse(text) as Record<string, string>;
    for (const name of Object.keys(headers))
      if (isSecretHeader(name)) headers[name] = this.box.open(headers[name]!);
    return headers;
  }

  private targetOf(row: StepRow): Target {
    return { url: row.url, method: row.method, headers: this.openHeaders(row.headers) };
  }
}

const NONE: readonly never[] = [];
const NO_HEADERS: Headers = {};

function rulesOf(row: RulesRow): RetryRules {
  return {
    maxAttempts: row.max_attempts,
    timeout: row.timeout,
    retryDelays: row.retry_delays === null ? null : (JSON.parse(row.retry_delays) as string[]),
    noRetryOn: row.no_retry_on === null ? NONE : (JSON.parse(row.no_retry_on) as (number | string)[]),
  };
}

export function responseOf(
  row: Pick<AttemptRow, "code" | "headers" | "body" | "truncated"> | undefined,
): StoredResponse | null {
  if (row === undefined || row.code === null) return null;
  return {
    code: row.code,
    headers: row.headers === null ? NO_HEADERS : (JSON.parse(row.headers) as Headers),
    body: row.body ?? new Uint8Array(0),
    truncated: row.truncated === 1,
  };
}

export function attemptOf(row: AttemptRow, stepName: string | null): Attempt {
  return {
    number: row.number,
    step: row.step,
    stepName,
    startedAt: row.started_at,
    durationMs: row.duration_ms,
    response: responseOf(row),
    error: row.error,
    errorCode: row.error_code,
    decision: row.decision,
  };
}

/** JSON for a column that is null when the list is empty. */
export function listColumn(list: readonly unknown[] | null): string | null {
  return list === null || list.length === 0 ? null : JSON.stringify(list);
}
