/** What users read of a job: the schemas behind the API reference and the tools' structured results. */
import * as v from "valibot";
import { MODES } from "../base/tenant.ts";
import { METHODS, STATUSES } from "../jobs/job.ts";
import { ERROR_CODES } from "../jobs/outcome.ts";

const described = <const T extends v.GenericSchema>(schema: T, text: string) =>
  v.pipe(schema, v.description(text));
/** A schema with a title is described once, under it, in the API reference. */
const titled = <const T extends v.GenericSchema>(title: string, schema: T) => v.pipe(schema, v.title(title));

export const timeOut = v.pipe(
  v.string(),
  v.description("RFC 3339, UTC, milliseconds."),
  v.metadata({ format: "date-time" }),
);
export const timeOrNull = v.nullable(timeOut);
const textOrNull = v.nullable(v.string());
const count = v.pipe(v.number(), v.integer(), v.minValue(0));
const countOrNull = v.nullable(count);
const json = v.unknown();

const response = {
  response_code: countOrNull,
  response_headers: v.nullable(v.record(v.string(), v.string())),
  response_body: described(
    json,
    "The JSON value when the target sent JSON, else the text, else base64; null for none.",
  ),
  response_body_encoding: v.optional(described(v.literal("base64"), "There when response_body is base64.")),
  response_truncated: described(
    v.boolean(),
    "True when the response was longer than the 1 MiB that is stored.",
  ),
};

const rules = {
  max_attempts: count,
  timeout: v.string(),
  retry_delays: v.nullable(v.array(v.string())),
  no_retry_on: v.array(v.union([v.number(), v.string()])),
};

const method = v.picklist(METHODS);

const step = titled(
  "Step",
  v.object({
    name: v.string(),
    status: v.picklist(STATUSES),
    url: v.string(),
    method,
    payload: described(json, "Null: the response of the step before."),
    headers: v.record(v.string(), v.string()),
    ...rules,
    delay: textOrNull,
    requires_approval: v.boolean(),
    approved_at: timeOrNull,
    attempts: count,
    ...response,
    duration_ms: countOrNull,
    last_error: textOrNull,
  }),
);

const listed = {
  id: v.string(),
  status: v.picklist(STATUSES),
  url: described(textOrNull, "Null for a pipeline, whose steps have URLs of their own."),
  method: v.nullable(method),
  queue: v.string(),
  tags: v.array(v.string()),
  ...rules,
  attempts: described(count, "Attempts so far, of the current step; each one counted, never restarted."),
  run_at: timeOut,
  created_at: timeOut,
  updated_at: timeOut,
  started_at: described(timeOrNull, "When the latest attempt began."),
  finished_at: timeOrNull,
  response_code: countOrNull,
  duration_ms: described(countOrNull, "Of the latest attempt, in milliseconds."),
  last_error: described(textOrNull, "A sentence for a person."),
  last_error_code: v.nullable(v.picklist(ERROR_CODES)),
  next_retry_at: timeOrNull,
  retries_remaining: count,
  dedupe_key: textOrNull,
  deduplicated: described(
    v.boolean(),
    "True in the answer to a create that dedupe_key kept from making a job.",
  ),
  idempotency_key: textOrNull,
  requires_approval: v.boolean(),
  approval_timeout: textOrNull,
  approved_at: timeOrNull,
  approved_by: described(textOrNull, "The id of the key that approved."),
  rejected_at: timeOrNull,
  rejected_by: described(textOrNull, "The id of the key that rejected, or `system`."),
  approval_note: textOrNull,
  callback_url: textOrNull,
  callback: v.nullable(
    v.object({
      status: v.picklist(["pending", "delivered", "failed"]),
      attempts: count,
      response_code: countOrNull,
      last_error: textOrNull,
      next_retry_at: timeOrNull,
    }),
  ),
  schedule_id: v.optional(described(v.string(), "Only on jobs made by a schedule.")),
  scheduled_for: described(timeOrNull, "The due time that made the job; null when none did."),
  mode: v.picklist(MODES),
  actions: described(
    v.array(v.picklist(["cancel", "approve", "reject", "retry"])),
    "What this key may do to the job as it stands.",
  ),
};

export const listedJob = titled("ListedJob", v.object(listed));

export const job = titled(
  "Job",
  v.object({
    ...listed,
    payload: json,
    headers: v.record(v.string(), v.string()),
    ...response,
    steps: v.nullable(v.array(step)),
  }),
);

export const attempt = titled(
  "Attempt",
  v.object({
    number: count,
    step: described(textOrNull, "The step's name; null for a plain job."),
    started_at: timeOut,
    duration_ms: countOrNull,
    ...response,
    error: textOrNull,
    error_code: v.nullable(v.picklist(ERROR_CODES)),
    decision: described(v.string(), "A plain sentence: what happens next and why."),
  }),
);

export function pageOf<const T extends v.GenericSchema>(item: T) {
  return v.object({
    data: v.array(item),
    next_cursor: described(textOrNull, "Give it as cursor to get the next page; null on the last one."),
  });
}
