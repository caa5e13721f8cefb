/** The job that tells `callback_url` how another job ended: signed, with five attempts of its own, never listed. */
import { formatTime } from "../base/clock.ts";
import { RawJson, stringify } from "../base/json.ts";
import { DEFAULT_DEDUPE_WINDOW, DEFAULT_TIMEOUT, type JobDetail, type NewJob } from "./job.ts";
import { viewJob } from "./view.ts";

const CALLBACK_ATTEMPTS = 5;

/** A queue of their own, under a name that no user can give, so that the limits of the job's queue do not hold them. */
export const CALLBACK_QUEUE = "(callbacks)";

/**
 * `job` as it ended, without a callback: the one that it may have is of an earlier end, before a retry. The body is fixed
 * now, so that each attempt carries the same bytes under the same `webhook-id`.
 */
export function callbackJob(job: JobDetail, url: string, id: string, now: number): NewJob {
  const body = {
    type: `job.${job.status}`,
    timestamp: formatTime(now),
    data: viewJob({ ...job, callback: null }, []),
  };
  return {
    id,
    queue: CALLBACK_QUEUE,
    tags: [],
    target: { url, method: "POST", headers: {} },
    rules: { maxAttempts: CALLBACK_ATTEMPTS, timeout: DEFAULT_TIMEOUT, retryDelays: null, noRetryOn: [] },
    payload: new RawJson(stringify(body)),
    steps: [],
    runAt: now,
    requiresApproval: false,
    approvalTimeout: null,
    callbackUrl: null,
    dedupeKey: null,
    dedupeWindow: DEFAULT_DEDUPE_WINDOW,
    idempotencyKey: null,
    scheduleId: null,
    scheduledFor: null,
  };
}
