/** What Errand can do with jobs. */
import { setImmediate as turn } from "node:timers/promises";
import * as v from "valibot";
import { durationMs } from "../base/duration.ts";
import { Problem } from "../base/errors.ts";
import { type JobDetail, STATUSES, type StoredResponse } from "../jobs/job.ts";
import { approve, cancel, FINAL, reject, retry } from "../jobs/lifecycle.ts";
import { viewAhead, viewAttempt, viewJob, viewListedJob } from "../jobs/view.ts";
import type { Enqueued, Rule } from "../store/store.ts";
import { isObject } from "./faults.ts";
import * as field from "./fields.ts";
import { filterFields, filterOf, statusFilter } from "./job-filter.ts";
import { checkWork, jobFields, newJob, urlsOf } from "./job-input.ts";
import { attempt, job, listedJob } from "./job-output.ts";
import { type Context, type Operation, onceOnly, operation } from "./operation.ts";
import { pageOf } from "./output-fields.ts";
import { refuseBlocked } from "./targets.ts";

const jobId = field.id("a job");

const view = (context: Context) => (detail: JobDetail) => viewJob(detail, context.principal.scopes);

function noSuchJob(id: string): Problem {
  return new Problem("not_found", `There is no job ${id} in this account and mode.`);
}

/** Looks at large responses one by one, so that a page or a pipeline of them is in nobody's way. */
async function viewAheadInTurns(
  them: readonly { readonly response: StoredResponse | null }[],
): Promise<void> {
  for (const { response } of them) if (viewAhead(response)) await turn();
}

/** Applies a rule of the lifecycle to one job, as the caller. */
async function change(context: Context, id: string, rule: Rule) {
  const changed = await context.store.jobs.change(context.principal.tenant, id, rule);
  if (changed === null) throw noSuchJob(id);
  return view(context)(changed);
}

/** The job as it is once it has ended or `waitMs` have passed. One waiter costs a timer and no reading meanwhile. */
async function waitForEnd(context: Context, id: string, waitMs: number): Promise<JobDetail> {
  const { store, feed, clock, signal } = context;
  let stopWaiting = () => {};
  const ended = new Promise<void>((resolve) => {
    const stops = [feed.onEnd(id, resolve), clock.timer(waitMs, resolve)];
    signal().addEventListener("abort", () => resolve(), { once: true });
    stopWaiting = () => stops.forEach((stop) => stop());
  });
  try {
    // Listening comes before reading, so that an end in between is not missed.
    const detail = await store.jobs.get(context.principal.tenant, id);
    if (detail === null) throw noSuchJob(id);
    if (FINAL.has(detail.status)) return detail;
    await ended;
  } finally {
    stopWaiting();
  }
  return (await store.jobs.get(context.principal.tenant, id)) ?? Promise.reject(noSuchJob(id));
}

const createdView = (context: Context) => (enqueued: readonly Enqueued[]) => {
  const [first] = enqueued;
  if (first === undefined) throw new Error("a create made no job");
  return viewJob(first.job, context.principal.scopes, first.deduplicated);
};

export const jobOperations: readonly Operation[] = [
  operation({
    name: "jobs.create",
    summary: "Enqueue a job: an HTTP request to be made now or later, and retried until it worked",
    scope: "write",
    effect: "write",
    input: jobFields,
    output: job,
    check: checkWork,
    http: {
      method: "POST",
      path: "/v1/jobs",
      status: ({ deduplicated }) => (deduplicated ? 200 : 201),
      statuses: [200, 201],
      location: ({ id }) => `/v1/jobs/${id}`,
    },
    cli: {
      command: "jobs create",
      examples: [
        `errand jobs create --url https://example.com/hook --payload '{"order":42}'`,
        "errand jobs create --url https://example.com/report --payload @report.json --delay 5m --wait",
      ],
    },
    mcp: "create_job",
    creates: true,
    problems: ["invalid_url", "blocked_target", "idempotency_key_reused"],
    example: { url: "https://example.com/hook", payload: { order: 42 }, max_attempts: 5 },
    async run(context, fields) {
      refuseBlocked(context, urlsOf(fields));
      const now = context.clock.now();
      const made = newJob(fields, now, context.idempotency?.key ?? null);
      return onceOnly(context, createdView(context), (once) =>
        context.store.jobs.enqueue(context.principal.tenant, [made], now, once),
      );
    },
  }),

  operation({
    name: "jobs.create_batch",
    summary: "Enqueue up to 1,000 jobs, all or none",
    scope: "write",
    effect: "write",
    input: field.closed({
      jobs: v.pipe(
        field.list(jobFields, 1, 1_000, "has to hold 1 to 1,000 jobs"),
        v.description("The jobs, 1 to 1,000: an array of what creates one."),
      ),
    }),
    output: v.object({ data: v.array(job) }),
    check: ({ jobs }) =>
      Array.isArray(jobs)
        ? jobs.flatMap((one: unknown, i) => (isObject(one) ? checkWork(one, `/jobs/${i}`) : []))
        : [],
    http: { method: "POST", path: "/v1/jobs/batch", status: 201 },
    cli: { command: "jobs create-batch", examples: ["errand jobs create-batch --jobs @jobs.json -o id"] },
    mcp: "create_jobs",
    creates: true,
    problems: ["invalid_url", "blocked_target", "idempotency_key_reused"],
    example: {
      jobs: [
        { url: "https://example.com/hook", payload: 1 },
        { url: "https://example.com/hook", payload: 2 },
      ],
    },
    async run(context, { jobs }) {
      jobs.forEach((fields, i) => refuseBlocked(context, urlsOf(fields, `/jobs/${i}`)));
      const now = context.clock.now();
      const made = jobs.map((fields) => newJob(fields, now, context.idempotency?.key ?? null));
      return onceOnly(
        context,
        (enqueued: readonly Enqueued[]) => ({
          data: enqueued.map((one) => viewJob(one.job, context.principal.scopes, one.deduplicated)),
        }),
        (once) => context.store.jobs.enqueue(context.principal.tenant, made, now, once),
      );
    },
  }),

  operation({
    name: "jobs.get",
    summary: "Read a job, its state and the target's response; with wait, once it has ended",
    scope: "read",
    effect: "read",
    input: field.closed({
      id: jobId,
      wait: v.optional(
        field.duration(0, 60_000, "up to 60s", "How long to wait for its end; then it comes as it is"),
      ),
    }),
    output: job,
    http: { method: "GET", path: "/v1/jobs/{id}", status: 200 },
    cli: { command: "jobs get", positional: ["id"], examples: ["errand jobs get job_01jd…"] },
    mcp: "get_job",
    moreTools: [
      {
        name: "wait_for_job",
        description:
          "Wait until a job has ended and read it. When the wait is over first, the job comes as it is: see status, and call again.",
        defaults: { wait: "30s" },
      },
    ],
    problems: ["not_found"],
    async run(context, { id, wait }) {
      const detail =
        wait === undefined
          ? await context.store.jobs.get(context.principal.tenant, id)
          : await waitForEnd(context, id, durationMs(wait));
      if (detail === null) throw noSuchJob(id);
      await viewAheadInTurns([detail, ...detail.steps]);
      return view(context)(detail);
    },
  }),

  operation({
    name: "jobs.list",
    summary: "List jobs, newest first",
    scope: "read",
    effect: "read",
    input: field.closed({
      status: statusFilter(STATUSES),
      ...filterFields,
      ...field.page,
    }),
    output: pageOf(listedJob),
    http: { method: "GET", path: "/v1/jobs", status: 200 },
    cli: { command: "jobs list", examples: ["errand jobs list --status failed --queue mail"] },
    mcp: "list_jobs",
    async run(context, { status, limit, cursor, ...filter }) {
      const page = await context.store.jobs.list(
        context.principal.tenant,
        { ...filterOf(filter), statuses: status },
        field.pageRequest({ limit, cursor }),
      );
      return {
        data: page.items.map((one) => viewListedJob(one, context.principal.scopes)),
        next_cursor: page.nextCursor,
      };
    },
  }),

  operation({
    name: "jobs.attempts",
    summary: "List every attempt of a job, oldest first: what was answered, and what was decided",
    scope: "read",
    effect: "read",
    input: field.closed({ id: jobId, ...field.page }),
    output: pageOf(attempt),
    http: { method: "GET", path: "/v1/jobs/{id}/attempts", status: 200 },
    cli: { command: "jobs attempts", positional: ["id"], examples: ["errand jobs attempts job_01jd…"] },
    mcp: "get_job_attempts",
    problems: ["not_found"],
    async run(context, { id, ...wanted }) {
      const page = field.pageRequest(wanted);
      const attempts = await context.store.jobs.attempts(context.principal.tenant, id, page);
      if (attempts === null) throw noSuchJob(id);
      await viewAheadInTurns(attempts.items);
      return { data: attempts.items.map(viewAttempt), next_cursor: attempts.nextCursor };
    },
  }),

  operation({
    name: "jobs.cancel",
    summary: "Cancel a job that is pending or awaiting approval",
    scope: "write",
    effect: "destructive",
    input: field.closed({ id: jobId }),
    output: job,
    http: { method: "POST", path: "/v1/jobs/{id}/cancel", status: 200, bodyOptional: true },
    cli: { command: "jobs cancel", positional: ["id"], examples: ["errand jobs cancel job_01jd…"] },
    mcp: "cancel_job",
    problems: ["not_found", "not_cancellable"],
    run: (context, { id }) => change(context, id, (one) => cancel(one, context.clock.now())),
  }),

  operation({
    name: "jobs.approve",
    summary: "Approve a job that waits for approval",
    scope: "approve",
    effect: "write",
    input: field.closed({ id: jobId, note: v.optional(field.note) }),
    output: job,
    http: { method: "POST", path: "/v1/jobs/{id}/approve", status: 200, bodyOptional: true },
    cli: {
      command: "jobs approve",
      positional: ["id"],
      examples: [`errand jobs approve job_01jd… --note "looks right"`],
    },
    mcp: "approve_job",
    problems: ["not_found", "not_approvable"],
    run: (context, { id, note }) =>
      change(context, id, (one, step) =>
        approve(one, step, context.principal.keyId, note ?? null, context.clock.now()),
      ),
  }),

  operation({
    name: "jobs.reject",
    summary: "Reject a job that waits for approval; it is cancelled",
    scope: "approve",
    effect: "destructive",
    input: field.closed({ id: jobId, note: v.optional(field.note) }),
    output: job,
    http: { method: "POST", path: "/v1/jobs/{id}/reject", status: 200, bodyOptional: true },
    cli: {
      command: "jobs reject",
      positional: ["id"],
      examples: [`errand jobs reject job_01jd… --note "not today"`],
    },
    mcp: "reject_job",
    problems: ["not_found", "not_approvable"],
    run: (context, { id, note }) =>
      change(context, id, (one) => reject(one, context.principal.keyId, note ?? null, context.clock.now())),
  }),

  operation({
    name: "jobs.retry",
    summary: "Retry a failed or cancelled job with a new budget of attempts",
    description:
      "A pipeline goes on at the step that failed. What needs approval and never got it waits for it again. A retry is " +
      "asked for by name, so dedupe_key does not hold it back.",
    scope: "write",
    effect: "write",
    input: field.closed({ id: jobId }),
    output: job,
    http: { method: "POST", path: "/v1/jobs/{id}/retry", status: 200, bodyOptional: true },
    cli: { command: "jobs retry", positional: ["id"], examples: ["errand jobs retry job_01jd…"] },
    mcp: "retry_job",
    problems: ["not_found", "not_retryable"],
    run: (context, { id }) => change(context, id, (one, step) => retry(one, step, context.clock.now())),
  }),
];
