/** What a user says of a schedule, and what is kept of it. */
import { isDeepStrictEqual } from "node:util";
import * as v from "valibot";
import { formatTimeOrNull, parseTime } from "../base/clock.ts";
import type { InvalidField } from "../base/errors.ts";
import type { NewStep, RetryRules } from "../jobs/job.ts";
import { maskHeaders } from "../jobs/view.ts";
import { checkCron } from "../schedules/cron-check.ts";
import {
  MISSED_POLICIES,
  OVERLAP_POLICIES,
  type Schedule,
  type ScheduleSpec,
} from "../schedules/schedule.ts";
import { checkTimezone } from "../schedules/zone.ts";
import { invalidFields } from "./faults.ts";
import * as field from "./fields.ts";
import { checkWork, templateOf, workFields } from "./job-input.ts";
import { keepSecrets } from "./kept-secrets.ts";

export const cronExpr = v.pipe(
  v.string(),
  v.rawCheck(({ dataset, addIssue }) => {
    const fault = dataset.typed ? checkCron(dataset.value) : null;
    if (fault !== null) addIssue({ message: fault.detail });
  }),
  v.description("Standard five-field cron, or a nickname such as @daily."),
  v.metadata({ examples: ["0 9 * * 1"] }),
);

export const timezone = v.pipe(
  v.string(),
  v.rawCheck(({ dataset, addIssue }) => {
    const fault = dataset.typed ? checkTimezone(dataset.value) : null;
    if (fault !== null) addIssue({ message: fault.detail });
  }),
  v.description("An IANA time zone; UTC by default."),
  v.metadata({ examples: ["Europe/Berlin"] }),
);

export const scheduleName = field.text(1, 255, "What it is called: unique in the account and mode.");

export const scheduleFields = {
  cron_expr: cronExpr,
  timezone: v.optional(timezone),
  ...workFields,
  on_missed: v.optional(
    v.pipe(
      v.picklist(MISSED_POLICIES),
      v.description("What happens to times missed while the service was down; once by default."),
    ),
  ),
  on_overlap: v.optional(
    v.pipe(
      v.picklist(OVERLAP_POLICIES),
      v.description("Whether to run while a job of this schedule is unfinished; allow by default."),
    ),
  ),
  starts_at: v.optional(v.nullable(field.time("The first time at which it may fire"))),
  ends_at: v.optional(v.nullable(field.time("The last time at which it may fire"))),
  paused: v.optional(
    v.pipe(v.boolean(), v.description("It makes no jobs until it is resumed; false by default.")),
  ),
};

const closedFields = field.closed(scheduleFields);
export type ScheduleFields = v.InferOutput<typeof closedFields>;

/** Each field of a schedule, left as it is where it is not given. `null` takes away what a schedule can do without. */
export const patchFields = {
  ...scheduleFields,
  name: v.optional(v.nullable(scheduleName)),
  cron_expr: v.optional(cronExpr),
  retry_delays: v.optional(v.nullable(field.retryDelays)),
  callback_url: v.optional(v.nullable(field.callbackUrl)),
  approval_timeout: v.optional(v.nullable(field.approvalTimeout)),
};

const closedPatch = field.closed(patchFields);
export type SchedulePatch = v.InferOutput<typeof closedPatch>;

/** Faults between the fields of a schedule. */
export function checkSchedule(input: Readonly<Record<string, unknown>>): InvalidField[] {
  const faults = checkWork(input);
  const [start, end] = [input["starts_at"], input["ends_at"]].map((time) =>
    typeof time === "string" ? parseTime(time) : null,
  );
  if (start != null && end != null && end <= start)
    faults.push({ pointer: "/ends_at", detail: "has to be after starts_at" });
  return faults;
}

/** `before` is the schedule that this one takes the place of. */
export function specOf(
  fields: ScheduleFields,
  name: string | null,
  before: Schedule | null = null,
): ScheduleSpec {
  return {
    name,
    cronExpr: fields.cron_expr,
    timezone: fields.timezone ?? "UTC",
    job: keepSecrets(templateOf(fields), before?.job ?? null),
    onMissed: fields.on_missed ?? "once",
    onOverlap: fields.on_overlap ?? "allow",
    startsAt: fields.starts_at == null ? null : parseTime(fields.starts_at),
    endsAt: fields.ends_at == null ? null : parseTime(fields.ends_at),
    paused: fields.paused ?? false,
  };
}

/** The schedule with a patch laid over it. Throws a 422 Problem when the two do not go together. */
export function patched(schedule: Schedule, { name, ...patch }: SchedulePatch): ScheduleSpec {
  const before: Record<string, unknown> = fieldsOf(schedule);
  // A schedule calls one target or has steps: who gives the one means to be rid of the other.
  const replaced =
    patch.steps !== undefined ? ["url", "method", "headers"] : patch.url !== undefined ? ["steps"] : [];
  for (const field of replaced) delete before[field];
  // GET sends no body, and null, which is a payload, could not clear it. One that the patch itself gives is refused.
  if (patch.method === "GET") delete before["payload"];
  const merged = Object.fromEntries(
    Object.entries({ ...before, ...patch }).filter(([, value]) => value !== null && value !== undefined),
  );
  const faults = checkSchedule(merged);
  if (faults.length > 0) throw invalidFields(faults);
  return specOf(merged as ScheduleFields, name === undefined ? schedule.name : name, schedule);
}

/** The fields that would make this schedule, its secrets masked as those who read it see them. */
function fieldsOf({ job, ...schedule }: Schedule): ScheduleFields {
  const { target, rules } = job;
  return {
    cron_expr: schedule.cronExpr,
    timezone: schedule.timezone,
    ...(target === null
      ? {}
      : { url: target.url, method: target.method, headers: maskHeaders(target.headers) }),
    ...(job.payload === null ? {} : { payload: job.payload }),
    ...ruleFieldsOf(rules),
    queue: job.queue,
    tags: [...job.tags],
    requires_approval: job.requiresApproval,
    ...(job.approvalTimeout === null ? {} : { approval_timeout: job.approvalTimeout }),
    ...(job.callbackUrl === null ? {} : { callback_url: job.callbackUrl }),
    ...(job.steps.length === 0 ? {} : { steps: job.steps.map((step) => stepFieldsOf(step, rules)) }),
    on_missed: schedule.onMissed,
    on_overlap: schedule.onOverlap,
    starts_at: formatTimeOrNull(schedule.startsAt),
    ends_at: formatTimeOrNull(schedule.endsAt),
    paused: schedule.paused,
  };
}

function ruleFieldsOf(rules: RetryRules) {
  return {
    max_attempts: rules.maxAttempts,
    timeout: rules.timeout,
    ...(rules.retryDelays === null ? {} : { retry_delays: [...rules.retryDelays] }),
    no_retry_on: [...rules.noRetryOn],
  };
}

/** A rule that is the job's own is taken for inherited, so that the step follows when the job's changes. */
function stepFieldsOf(step: NewStep, inherited: RetryRules) {
  const own = ruleFieldsOf(step);
  const jobs: Record<string, unknown> = ruleFieldsOf(inherited);
  return {
    name: step.name,
    url: step.url,
    method: step.method,
    headers: maskHeaders(step.headers),
    ...(step.payload === null ? {} : { payload: step.payload }),
    ...(step.delay === null ? {} : { delay: step.delay }),
    requires_approval: step.requiresApproval,
    ...Object.fromEntries(
      Object.entries(own).filter(([field, value]) => !isDeepStrictEqual(value, jobs[field])),
    ),
  };
}
