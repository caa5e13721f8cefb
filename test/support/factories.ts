/** Jobs, outcomes and schedules for tests: sound by default, changed where a test says so. */
import { newId } from "../../src/base/ids.ts";
import { RawJson } from "../../src/base/json.ts";
import { createdJob } from "../../src/jobs/created.ts";
import type { JobDetail, NewJob, NewStep } from "../../src/jobs/job.ts";
import type { Failure, Response } from "../../src/jobs/outcome.ts";
import type { Schedule } from "../../src/schedules/schedule.ts";

export const TENANT = { accountId: "acct_test", mode: "test" } as const;

const RULES = { maxAttempts: 3, timeout: "30s", retryDelays: null, noRetryOn: [] } as const;

/** `url` is where it goes; `now` when it was made and, unless `runAt` says otherwise, when it is due. */
export function newJob(now: number, { url, ...fields }: Partial<NewJob> & { url?: string } = {}): NewJob {
  return {
    id: newId("job", now),
    queue: "default",
    tags: [],
    target: { url: url ?? "http://127.0.0.1:9/hook", method: "POST", headers: {} },
    rules: RULES,
    payload: new RawJson(`{"n":1.0}`),
    steps: [],
    runAt: now,
    requiresApproval: false,
    approvalTimeout: null,
    callbackUrl: null,
    dedupeKey: null,
    dedupeWindow: "24h",
    idempotencyKey: null,
    scheduleId: null,
    scheduledFor: null,
    ...fields,
  };
}

export function newStep(name: string, fields: Partial<NewStep> = {}): NewStep {
  return {
    ...RULES,
    name,
    url: `http://127.0.0.1:9/${name}`,
    method: "POST",
    headers: {},
    payload: null,
    delay: null,
    requiresApproval: false,
    ...fields,
  };
}

/** A pipeline of these steps. */
export function newPipeline(now: number, steps: readonly NewStep[], fields: Partial<NewJob> = {}): NewJob {
  return newJob(now, { target: null, steps, ...fields });
}

/** A job as it stands right after it was made, and then with these fields. */
export function aJob(now: number, fields: Partial<JobDetail> = {}, made: Partial<NewJob> = {}): JobDetail {
  return { ...createdJob(TENANT, newJob(now, made), now), ...fields };
}

export function response(code: number, headers: Record<string, string> = {}, body = ""): Response {
  return { kind: "response", code, headers, body: Buffer.from(body), truncated: false, durationMs: 5 };
}

export function failure(code: Failure["code"] = "connect"): Failure {
  return { kind: "failure", code, message: "The target could not be reached.", durationMs: 5 };
}

export function aSchedule(now: number, fields: Partial<Schedule> = {}): Schedule {
  const { queue, tags, target, rules, payload, steps, requiresApproval, approvalTimeout, callbackUrl } =
    newJob(now);
  return {
    id: newId("sch", now),
    tenant: TENANT,
    name: null,
    cronExpr: "* * * * *",
    timezone: "UTC",
    job: { queue, tags, target, rules, payload, steps, requiresApproval, approvalTimeout, callbackUrl },
    onMissed: "once",
    onOverlap: "allow",
    startsAt: null,
    endsAt: null,
    paused: false,
    nextRunAt: now + 60_000,
    lastRunAt: null,
    lastJobId: null,
    createdAt: now,
    updatedAt: now,
    ...fields,
  };
}
