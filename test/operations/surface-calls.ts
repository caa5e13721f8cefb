/** The calls that every door has to answer alike, in order: later ones work on what earlier ones have made. */

export interface Call {
  readonly operation: string;
  readonly what: string;
  readonly input: (given: {
    readonly url: string;
    readonly answer: (name: string) => Record<string, any>;
  }) => Record<string, unknown>;
  /** The error that it gets; none when it is to work. */
  readonly code?: string;
  /** The name under which later calls find the answer. */
  readonly keep?: string;
}

const UNKNOWN_JOB = "job_00000000000000000000000000";
const UNKNOWN_SCHEDULE = "sch_00000000000000000000000000";

function call(
  operation: string,
  what: string,
  input: Call["input"] | Record<string, unknown>,
  code?: string,
): Call {
  return {
    operation,
    what,
    input: typeof input === "function" ? input : () => input,
    ...(code === undefined ? {} : { code }),
  };
}

/** An operation on one thing: refused for one that does not exist, and done to what `name` has kept. */
function onOne(operation: string, name: string, unknown: string, more: Record<string, unknown> = {}): Call[] {
  return [
    call(operation, "of an unknown id", { id: unknown, ...more }, "not_found"),
    call(operation, "with an unknown field", { id: unknown, ...more, nope: "1" }, "invalid_request"),
    call(operation, "done", ({ answer }) => ({ id: answer(name)["id"], ...more })),
  ];
}

function create(
  what: string,
  fields: Record<string, unknown>,
  more: { keep?: string; code?: string } = {},
): Call {
  return { operation: "jobs.create", what, input: ({ url }) => ({ url, ...fields }), ...more };
}

const jobs: readonly Call[] = [
  create(
    "with every kind of field",
    {
      payload: { a: [1, "two", null], deep: { number: 1.5 } },
      method: "PUT",
      headers: { "x-mine": "1", authorization: "Bearer secret" },
      delay: "1h",
      timeout: "5s",
      max_attempts: 7,
      retry_delays: ["1s", "2m"],
      no_retry_on: [404, "5xx"],
      queue: "mail",
      tags: ["one", "two"],
      dedupe_key: "d1",
    },
    { keep: "later" },
  ),
  create("deduplicated", { dedupe_key: "d1" }),
  create("that waits for approval", { requires_approval: true, delay: "1h" }, { keep: "to approve" }),
  create("another that waits for approval", { requires_approval: true }, { keep: "to reject" }),
  create("to cancel", { delay: "1h" }, { keep: "to cancel" }),
  create("to run", { payload: { n: 1 } }, { keep: "to run" }),
  call("jobs.create", "a pipeline", {
    delay: "1h",
    steps: [{ url: "https://example.com/a" }, { url: "https://example.com/b", name: "b", payload: { x: 1 } }],
  }),
  call("jobs.create", "without a URL", {}, "invalid_request"),
  create("with a wrong URL", { url: "ftp://example.com" }, { code: "invalid_url" }),
  create("with a metadata address", { url: "http://169.254.169.254/" }, { code: "blocked_target" }),
  create("with several faults", { max_attempts: 0, tags: "one", nope: 1 }, { code: "invalid_request" }),
  create("with a payload for GET", { method: "GET", payload: null }, { code: "invalid_request" }),
  create(
    "with delay and run_at",
    { delay: "1s", run_at: "2030-01-01T00:00:00Z" },
    { code: "invalid_request" },
  ),

  call("jobs.create_batch", "two", ({ url }) => ({
    jobs: [
      { url, delay: "1h", payload: 1 },
      { url, delay: "2h" },
    ],
  })),
  call("jobs.create_batch", "none", { jobs: [] }, "invalid_request"),
  call(
    "jobs.create_batch",
    "one of them wrong",
    ({ url }) => ({ jobs: [{ url }, { url: "nope" }] }),
    "invalid_url",
  ),

  call("jobs.get", "once it has ended", ({ answer }) => ({ id: answer("to run")["id"], wait: "30s" })),
  call("jobs.get", "of an unknown id", { id: UNKNOWN_JOB }, "not_found"),
  call("jobs.get", "with too long a wait", { id: UNKNOWN_JOB, wait: "61s" }, "invalid_request"),
  ...onOne("jobs.attempts", "to run", UNKNOWN_JOB),

  call("jobs.list", "by state", { status: ["pending", "completed"], limit: 3 }),
  call("jobs.list", "by tag and queue", { tag: "two", queue: "mail" }),
  call("jobs.list", "of a state that there is not", { status: ["nope"] }, "invalid_request"),
  call("jobs.list", "too many", { limit: 101 }, "invalid_request"),
  call("jobs.list", "after a wrong cursor", { cursor: "nope" }, "invalid_request"),

  ...onOne("jobs.approve", "to approve", UNKNOWN_JOB, { note: "looks right" }),
  call("jobs.approve", "again", ({ answer }) => ({ id: answer("to approve")["id"] }), "not_approvable"),
  ...onOne("jobs.reject", "to reject", UNKNOWN_JOB, { note: "not today" }),
  ...onOne("jobs.cancel", "to cancel", UNKNOWN_JOB),
  call("jobs.cancel", "again", ({ answer }) => ({ id: answer("to cancel")["id"] }), "not_cancellable"),
  ...onOne("jobs.retry", "to cancel", UNKNOWN_JOB),
  call("jobs.retry", "of a pending job", ({ answer }) => ({ id: answer("later")["id"] }), "not_retryable"),
];

const schedules: readonly Call[] = [
  {
    operation: "schedules.create",
    what: "with a name and a payload",
    input: ({ url }) => ({
      url,
      cron_expr: "0 9 * * 1",
      timezone: "Europe/Berlin",
      name: "weekly",
      payload: { n: 1 },
    }),
    keep: "schedule",
  },
  call(
    "schedules.create",
    "with a name that is taken",
    ({ url }) => ({ url, cron_expr: "0 9 * * 1", name: "weekly" }),
    "name_taken",
  ),
  call(
    "schedules.create",
    "with a wrong expression",
    ({ url }) => ({ url, cron_expr: "61 * * * *" }),
    "invalid_cron",
  ),
  call(
    "schedules.create",
    "in a zone that there is not",
    ({ url }) => ({ url, cron_expr: "0 9 * * 1", timezone: "Mars/Olympus" }),
    "invalid_timezone",
  ),
  call("schedules.list", "all", {}),
  call("schedules.list", "none", { limit: 0 }, "invalid_request"),
  ...onOne("schedules.get", "schedule", UNKNOWN_SCHEDULE),
  ...onOne("schedules.update", "schedule", UNKNOWN_SCHEDULE, { cron_expr: "0 8 * * *", timezone: "UTC" }),
  ...onOne("schedules.pause", "schedule", UNKNOWN_SCHEDULE),
  ...onOne("schedules.resume", "schedule", UNKNOWN_SCHEDULE),
  ...onOne("schedules.trigger", "schedule", UNKNOWN_SCHEDULE),
  ...onOne("schedules.delete", "schedule", UNKNOWN_SCHEDULE),
];

const previews: readonly Call[] = [
  call(
    "schedules.preview",
    "of no zone",
    { cron_expr: "0 9 * * *", timezone: "Mars/Olympus" },
    "invalid_timezone",
  ),
  call("schedules.preview", "three times", { cron_expr: "0 9 1 1 *", timezone: "Europe/Berlin", count: 3 }),
];

/** Of the queue whose one job is not due, and of a month in which nothing was, so that no door is too early or too late. */
const queues: readonly Call[] = [
  call("queues.list", "the newest", { limit: 1 }),
  call("queues.list", "none", { limit: 0 }, "invalid_request"),
  call("queues.get", "one", { name: "mail" }),
  call("queues.get", "of an unknown name", { name: "nope" }, "not_found"),
  call("queues.pause", "done", { name: "mail" }),
  call("queues.pause", "of an unknown name", { name: "nope" }, "not_found"),
  call("queues.resume", "done", { name: "mail" }),
  call("queues.resume", "of an unknown name", { name: "nope" }, "not_found"),
  call("usage.get", "of a quiet month", { month: "2020-01" }),
  call("usage.get", "of a month that there is not", { month: "2020-13" }, "invalid_request"),
  // Last, since not every door offers it: what comes after would differ.
  call("queues.set", "limits", { name: "mail", concurrency: 2, rate_limit: { limit: 5, period: "1m" } }),
  call("queues.set", "a limit of nothing", { name: "mail", concurrency: 0 }, "invalid_request"),
];

export const calls: readonly Call[] = [...jobs, ...schedules, ...previews, ...queues];
