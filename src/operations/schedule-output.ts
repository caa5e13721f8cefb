/** What users read of a schedule, its coming times and its ledger. */
import * as v from "valibot";
import {
  MISSED_POLICIES,
  OCCURRENCE_OUTCOMES,
  OVERLAP_POLICIES,
  SCHEDULE_STATUSES,
} from "../schedules/schedule.ts";
import {
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

const fields = {
  id: v.string(),
  name: textOrNull,
  cron_expr: v.string(),
  timezone: v.string(),
  description: described(v.string(), "The expression in English."),
  status: described(
    v.picklist(SCHEDULE_STATUSES),
    "Why there is a next run or none. ended: no time is left before ends_at. invalid: this version of Errand does not take the expression or the zone any more.",
  ),
  url: textOrNull,
  method: v.nullable(method),
  headers,
  payload: json,
  ...rules,
  queue: v.string(),
  tags: v.array(v.string()),
  callback_url: textOrNull,
  requires_approval: v.boolean(),
  approval_timeout: textOrNull,
  steps: v.nullable(v.array(titled("ScheduleStep", v.object({ name: v.string(), ...stepWork })))),
  on_missed: v.picklist(MISSED_POLICIES),
  on_overlap: v.picklist(OVERLAP_POLICIES),
  starts_at: timeOrNull,
  ends_at: timeOrNull,
  paused: v.boolean(),
  next_run_at: described(timeOrNull, "Null when no run is to come; status says why."),
  last_run_at: described(timeOrNull, "When the latest job was made, by a due time or by trigger."),
  last_job_id: textOrNull,
  created_at: timeOut,
  updated_at: timeOut,
};

export const schedule = v.pipe(v.object(fields), v.title("Schedule"));

export const replacedSchedule = v.object({
  ...fields,
  change: described(
    v.picklist(["created", "replaced", "unchanged"]),
    "What this request did. unchanged: the schedule was as asked for already, and nothing was written.",
  ),
});

export const fireTimes = v.object({
  data: v.array(
    v.object({
      at: timeOut,
      local: described(v.string(), "The wall clock of the time zone, with its offset."),
      note: v.optional(
        described(
          v.picklist(["dst_gap", "dst_repeat"]),
          "dst_gap: the clock skips the time asked for, and this is where it goes on. dst_repeat: the clock shows this time twice.",
        ),
      ),
    }),
  ),
});

export const occurrence = v.pipe(
  v.object({
    scheduled_for: described(timeOut, "The due time."),
    outcome: described(
      v.picklist(OCCURRENCE_OUTCOMES),
      "late: fired more than 60 s after its time. missed: not fired, by on_missed. skipped_overlap: not fired, by on_overlap.",
    ),
    job_id: textOrNull,
    lateness_ms: v.nullable(v.number()),
  }),
  v.title("Occurrence"),
);
