/** The job and its steps as data. What may happen to them is in lifecycle.ts; how users see them, in view.ts. */
import type { RawJson } from "../base/json.ts";
import type { Tenant } from "../base/tenant.ts";
import { knownUrl } from "../base/url.ts";
import type { ErrorCode, Headers } from "./outcome.ts";

export const STATUSES = [
  "pending",
  "active",
  "completed",
  "failed",
  "cancelled",
  "awaiting_approval",
] as const;
export type JobStatus = (typeof STATUSES)[number];

export const METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE"] as const;
export type Method = (typeof METHODS)[number];

export const DEFAULT_METHOD: Method = "POST";
export const DEFAULT_MAX_ATTEMPTS = 3;
export const DEFAULT_TIMEOUT = "30s";
export const DEFAULT_QUEUE = "default";
export const DEFAULT_DEDUPE_WINDOW = "24h";

/** When a failure is tried again, and when not. Durations are texts, as the user wrote them. */
export interface RetryRules {
  readonly maxAttempts: number;
  readonly timeout: string;
  /** Replaces the backoff; the last one repeats. */
  readonly retryDelays: readonly string[] | null;
  /** Statuses (404) or classes ("4xx") that end the job at once. */
  readonly noRetryOn: readonly (number | string)[];
}

export interface Target {
  readonly url: string;
  readonly method: Method;
  readonly headers: Headers;
}

/** One HTTP request to be made: the whole of a plain job, or one step of a pipeline. */
export interface Task extends Target, RetryRules {}

/** One step of a pipeline and how far it has come. */
export interface Step extends Task {
  readonly name: string;
  /** Null: the response of the step before is the body. */
  readonly payload: RawJson | null;
  readonly delay: string | null;
  readonly requiresApproval: boolean;
  readonly approvedAt: number | null;
}

/** How far the end of a job has been told to `callback_url`. */
export interface Callback {
  readonly status: "pending" | "delivered" | "failed";
  readonly attempts: number;
  readonly responseCode: number | null;
  readonly lastError: string | null;
  /** Null unless an attempt failed and another one is to come. */
  readonly nextRetryAt: number | null;
}

/** Times are milliseconds since the epoch. Bodies live apart: see {@link JobDetail}. */
export interface Job {
  readonly id: string;
  readonly tenant: Tenant;
  readonly status: JobStatus;
  readonly queue: string;
  readonly tags: readonly string[];
  /** Null for a pipeline, whose steps have targets of their own. */
  readonly target: Target | null;
  /** Of a plain job; for a pipeline, the defaults of its steps. */
  readonly rules: RetryRules;
  /** What the next attempt does: the plain job's own request, or that of the current step. */
  readonly task: Task;
  /** Index of the current step; 0 for a plain job. */
  readonly step: number;
  /** When the first delivery was asked for. */
  readonly runAt: number;
  /** pending: when the next attempt is due. awaiting_approval: when the wait ends by itself, null for never. */
  readonly dueAt: number | null;
  /** Attempts of the current step, each one counted, never restarted. With `step` it is the fencing token. */
  readonly attempts: number;
  /** Attempts that use up the present budget of `maxAttempts`. */
  readonly spent: number;
  /** Attempts during which the process died, since the job was created or retried by a person. */
  readonly deaths: number;
  readonly createdAt: number;
  readonly updatedAt: number;
  readonly startedAt: number | null;
  readonly finishedAt: number | null;
  readonly responseCode: number | null;
  readonly durationMs: number | null;
  readonly lastError: string | null;
  readonly lastErrorCode: ErrorCode | null;
  readonly dedupeKey: string | null;
  readonly idempotencyKey: string | null;
  readonly requiresApproval: boolean;
  readonly approvalTimeout: string | null;
  readonly approvedAt: number | null;
  readonly approvedBy: string | null;
  readonly rejectedAt: number | null;
  readonly rejectedBy: string | null;
  readonly approvalNote: string | null;
  readonly callbackUrl: string | null;
  readonly callback: Callback | null;
  readonly scheduleId: string | null;
  readonly scheduledFor: number | null;
}

/** The target's answer as it is kept: the body's bytes, and whether they are all of it. */
export interface StoredResponse {
  readonly code: number;
  readonly headers: Headers;
  readonly body: Uint8Array;
  readonly truncated: boolean;
}

/** A step with what came of it. */
export interface StepDetail extends Step {
  readonly attempts: number;
  readonly response: StoredResponse | null;
  readonly durationMs: number | null;
  readonly lastError: string | null;
}

/** A job with its bodies: what `GET /v1/jobs/{id}` shows. */
export interface JobDetail extends Job {
  readonly payload: RawJson | null;
  readonly response: StoredResponse | null;
  readonly steps: readonly StepDetail[];
}

/** What every job of a schedule has in common, and what any job is made from. */
export interface JobTemplate {
  readonly queue: string;
  readonly tags: readonly string[];
  /** Null for a pipeline. */
  readonly target: Target | null;
  readonly rules: RetryRules;
  readonly payload: RawJson | null;
  /** Empty for a plain job. */
  readonly steps: readonly NewStep[];
  readonly requiresApproval: boolean;
  readonly approvalTimeout: string | null;
  readonly callbackUrl: string | null;
}

/** A job that does not exist yet. */
export interface NewJob extends JobTemplate {
  readonly id: string;
  readonly runAt: number;
  readonly dedupeKey: string | null;
  readonly dedupeWindow: string;
  readonly idempotencyKey: string | null;
  readonly scheduleId: string | null;
  readonly scheduledFor: number | null;
}

export type NewStep = Omit<Step, "approvedAt">;

/** One attempt in the ledger of a job. */
export interface Attempt {
  /** From 1, within its step. */
  readonly number: number;
  /** Index of the step; 0 for a plain job. */
  readonly step: number;
  readonly stepName: string | null;
  readonly startedAt: number;
  readonly durationMs: number | null;
  readonly response: StoredResponse | null;
  readonly error: string | null;
  readonly errorCode: ErrorCode | null;
  /** A plain sentence: what happens next and why. */
  readonly decision: string;
}

/** Lanes keep targets apart: due jobs wait per queue and origin. */
export function originOf(url: string): string {
  return knownUrl(url).origin;
}
