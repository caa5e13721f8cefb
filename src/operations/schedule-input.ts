/** What a user says of a schedule, and what is kept of it. */
import * as v from "valibot";
import { parseTime } from "../base/clock.ts";
import type { InvalidField } from "../base/errors.ts";
import { checkCron } from "../schedules/cron-check.ts";
import { MISSED_POLICIES, OVERLAP_POLICIES, type ScheduleSpec } from "../schedules/schedule.ts";
import { checkTimezone } from "../schedules/zone.ts";
import * as field from "./fields.ts";
import { checkWork, templateOf, workFields } from "./job-input.ts";

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

export const scheduleName = field.text(1, 255, "Unique in the account and mode.");

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
  starts_at: v.optional(v.nullable(field.time)),
  ends_at: v.optional(v.nullable(field.time)),
  paused: v.optional(v.boolean()),
};

const closedFields = field.closed(scheduleFields);
export type ScheduleFields = v.InferOutput<typeof closedFields>;

export function checkSchedule(input: Readonly<Record<string, unknown>>): InvalidField[] {
  const faults = checkWork(input);
  const [start, end] = [input["starts_at"], input["ends_at"]].map((time) =>
    typeof time === "string" ? parseTime(time) : null,
  );
  if (start != null && end != null && end <= start)
    faults.push({ pointer: "/ends_at", detail: "has to be after starts_at" });
  return faults;
}

export function specOf(fields: ScheduleFields, name: string | null): ScheduleSpec {
  return {
    name,
    cronExpr: fields.cron_expr,
    timezone: fields.timezone ?? "UTC",
    job: templateOf(fields),
    onMissed: fields.on_missed ?? "once",
    onOverlap: fields.on_overlap ?? "allow",
    startsAt: fields.starts_at == null ? null : parseTime(fields.starts_at),
    endsAt: fields.ends_at == null ? null : parseTime(fields.ends_at),
    paused: fields.paused ?? false,
  };
}
