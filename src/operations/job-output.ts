/** What users read of a job: the schemas behind the API reference and the tools' structured results. */
import * as v from "valibot";
import { MODES } from "../base/tenant.ts";
import { STATUSES } from "../jobs/job.ts";
import { ERROR_CODES } from "../jobs/outcome.ts";
import {
  count,
  countOrNull,
  described,
  headers,
  json,
  method,
  rules,
  stepWork,
  textOrNull,
  timeOrNull,
  timeOut,
  titled,
} from "./output-fields.ts";

const response = {
  response_code: countOrNull,
  response_headers: v.nullable(headers),
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

const step = titled(
  "Step",
  v.object({
    name: v.string(),
    status: v.picklist(STATUSES),
    ...stepWork,
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
    headers,
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
