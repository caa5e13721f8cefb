/** What a user says of a job, and the job that it makes. */
import * as v from "valibot";
import { parseTime } from "../base/clock.ts";
import { durationMs } from "../base/duration.ts";
import type { InvalidField } from "../base/errors.ts";
import { newId } from "../base/ids.ts";
import { RawJson } from "../base/json.ts";
import {
  DEFAULT_DEDUPE_WINDOW,
  DEFAULT_MAX_ATTEMPTS,
  DEFAULT_METHOD,
  DEFAULT_QUEUE,
  DEFAULT_TIMEOUT,
  type JobTemplate,
  type NewJob,
  type NewStep,
  type RetryRules,
} from "../jobs/job.ts";
import { faultsOfReferences, INPUT } from "../jobs/references.ts";
import * as field from "./fields.ts";

const ruleFields = {
  max_attempts: v.optional(field.maxAttempts),
  timeout: v.optional(field.timeout),
  retry_delays: v.optional(field.retryDelays),
  no_retry_on: v.optional(field.noRetryOn),
};

const targetFields = {
  method: v.optional(field.method),
  headers: v.optional(field.headers),
  payload: v.optional(field.payload),
};

const requiresApproval = v.pipe(v.boolean(), v.description("It waits until somebody approves it."));

const stepFields = field.closed({
  name: v.optional(
    v.pipe(
      field.text(1, 64, "Unique in the job; step_1, step_2 … by default."),
      v.check((name) => !name.includes("#"), "must not contain #, which ends the name in a reference"),
      v.check((name) => name !== INPUT, "cannot be input, which stands for the pipeline's own payload"),
    ),
  ),
  url: field.url,
  ...targetFields,
  payload: v.optional(
    v.pipe(
      field.payload,
      v.description(
        `Any JSON value; without it, the response of the step before is the body. {"$from":"<step>#<JSON Pointer>"} and {"$from":"input#<JSON Pointer>"} anywhere in it stand for parts of an earlier step's response and of the job's payload.`,
      ),
    ),
  ),
  ...ruleFields,
  delay: v.optional(
    field.delay("The wait before this step, from the end of the one before, or from its approval"),
  ),
  requires_approval: v.optional(requiresApproval),
});

const MAX_STEPS = 20;

/** Fields that a job and a schedule have in common: what is to be done. */
export const workFields = {
  url: v.optional(
    v.pipe(
      field.url,
      v.description("What to call: an absolute http or https URL. Required unless there are steps."),
    ),
  ),
  ...targetFields,
  ...ruleFields,
  queue: v.optional(
    v.pipe(field.queueName, v.description("The queue that it waits in; `default` by default.")),
  ),
  tags: v.optional(field.tags),
  requires_approval: v.optional(requiresApproval),
  approval_timeout: v.optional(field.approvalTimeout),
  callback_url: v.optional(field.callbackUrl),
  steps: v.optional(
    v.pipe(
      field.list(stepFields, 1, MAX_STEPS, `has to have 1 to ${MAX_STEPS} steps`),
      v.description("A pipeline: steps that run in order, each fed by the one before."),
    ),
  ),
};

export const jobFields = field.closed({
  ...workFields,
  delay: v.optional(field.delay("Postpones the first delivery")),
  run_at: v.optional(field.time("When the first delivery is due, in place of delay; a past time means now")),
  dedupe_key: v.optional(
    field.text(
      1,
      255,
      "While a job with this key is unfinished, or younger than dedupe_window, no second one is made.",
    ),
  ),
  dedupe_window: v.optional(field.dedupeWindow),
});

export type JobFields = v.InferOutput<typeof jobFields>;
type WorkFields = Omit<JobFields, "delay" | "run_at" | "dedupe_key" | "dedupe_window">;

/** Faults between the fields of a job. `at` is the pointer of the job in the request. */
export function checkWork(input: Readonly<Record<string, unknown>>, at = ""): InvalidField[] {
  const faults: InvalidField[] = [];
  const add = (name: string, detail: string) => faults.push({ pointer: `${at}/${name}`, detail });
  const has = (name: string) => input[name] !== undefined;
  if (has("steps")) {
    for (const name of ["url", "method", "headers"].filter(has))
      add(name, "cannot stand beside steps; each step has its own");
    if (Array.isArray(input["steps"])) faults.push(...checkSteps(input["steps"], `${at}/steps`));
  } else {
    if (!has("url")) add("url", "is required, unless the job has steps");
    if (input["method"] === "GET" && has("payload"))
      add("payload", "cannot go with GET, which sends no body");
  }
  if (has("delay") && has("run_at")) add("run_at", "cannot stand beside delay; give one of the two");
  return faults;
}

function checkSteps(steps: readonly unknown[], at: string): InvalidField[] {
  const faults: InvalidField[] = [];
  // The schema refuses them all, and to compare the names of very many would take very long.
  if (steps.length > MAX_STEPS) return faults;
  const names = steps.map((step, i) => nameOfStep(step, i));
  steps.forEach((step, i) => {
    if (typeof step !== "object" || step === null) return;
    const add = (place: string, detail: string) => faults.push({ pointer: `${at}/${i}${place}`, detail });
    if (names.indexOf(names[i]) < i) add("/name", "is the name of an earlier step; names are unique");
    if (!("payload" in step) || !(step.payload instanceof RawJson)) return;
    if ("method" in step && step.method === "GET") add("/payload", "cannot go with GET, which sends no body");
    for (const { pointer, detail } of faultsOfReferences(step.payload, names, i))
      add(`/payload${pointer}`, detail);
  });
  return faults;
}

function nameOfStep(step: unknown, index: number): unknown {
  const given = typeof step === "object" && step !== null && "name" in step ? step.name : undefined;
  return given ?? defaultStepName(index);
}

function defaultStepName(index: number): string {
  return `step_${index + 1}`;
}

/** Every URL that a job would call, with the pointer to it. */
export function urlsOf(fields: WorkFields, at = ""): { pointer: string; url: string }[] {
  const urls: { pointer: string; url: string }[] = [];
  if (fields.url !== undefined) urls.push({ pointer: `${at}/url`, url: fields.url });
  if (fields.callback_url !== undefined)
    urls.push({ pointer: `${at}/callback_url`, url: fields.callback_url });
  fields.steps?.forEach((step, i) => urls.push({ pointer: `${at}/steps/${i}/url`, url: step.url }));
  return urls;
}

const DEFAULT_RULES: RetryRules = {
  maxAttempts: DEFAULT_MAX_ATTEMPTS,
  timeout: DEFAULT_TIMEOUT,
  retryDelays: null,
  noRetryOn: [],
};

/** What a job or a schedule is to do, the defaults filled in. */
export function templateOf(fields: WorkFields): JobTemplate {
  const rules = rulesOf(fields, DEFAULT_RULES);
  const { url } = fields;
  return {
    queue: fields.queue ?? DEFAULT_QUEUE,
    tags: fields.tags ?? [],
    target:
      url === undefined
        ? null
        : { url, method: fields.method ?? DEFAULT_METHOD, headers: fields.headers ?? {} },
    rules,
    payload: fields.payload ?? null,
    steps: (fields.steps ?? []).map((step, i) => stepOf(step, i, rules)),
    requiresApproval: fields.requires_approval ?? false,
    approvalTimeout: fields.approval_timeout ?? null,
    callbackUrl: fields.callback_url ?? null,
  };
}

function stepOf(
  step: NonNullable<WorkFields["steps"]>[number],
  index: number,
  defaults: RetryRules,
): NewStep {
  return {
    name: step.name ?? defaultStepName(index),
    url: step.url,
    method: step.method ?? DEFAULT_METHOD,
    headers: step.headers ?? {},
    payload: step.payload ?? null,
    delay: step.delay ?? null,
    requiresApproval: step.requires_approval ?? false,
    ...rulesOf(step, defaults),
  };
}

function rulesOf(fields: Pick<WorkFields, keyof typeof ruleFields>, defaults: RetryRules): RetryRules {
  return {
    maxAttempts: fields.max_attempts ?? defaults.maxAttempts,
    timeout: fields.timeout ?? defaults.timeout,
    retryDelays: fields.retry_delays ?? defaults.retryDelays,
    noRetryOn: fields.no_retry_on ?? defaults.noRetryOn,
  };
}

export function newJob(fields: JobFields, now: number, idempotencyKey: string | null): NewJob {
  return {
    ...templateOf(fields),
    id: newId("job", now),
    runAt: runAtOf(fields, now),
    dedupeKey: fields.dedupe_key ?? null,
    dedupeWindow: fields.dedupe_window ?? DEFAULT_DEDUPE_WINDOW,
    idempotencyKey,
    scheduleId: null,
    scheduledFor: null,
  };
}

function runAtOf({ delay, run_at }: JobFields, now: number): number {
  if (delay !== undefined) return now + durationMs(delay);
  return Math.max(now, run_at === undefined ? now : (parseTime(run_at) ?? now));
}
