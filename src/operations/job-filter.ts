/** The filters of job lists, which bulk operations share. */
import * as v from "valibot";
import { parseTime } from "../base/clock.ts";
import type { JobStatus } from "../jobs/job.ts";
import type { JobFilter } from "../store/store.ts";
import * as field from "./fields.ts";

/** No state at all is refused: whether it means none or all of them is not to be guessed. */
export const statusFilter = <const T extends readonly JobStatus[]>(states: T) =>
  v.optional(
    v.pipe(
      v.array(v.picklist(states)),
      v.minLength(1, "has to name at least one state; leave it out for all of them"),
      v.description("Only jobs in these states; all of them by default."),
    ),
  );

export const filterFields = {
  queue: v.optional(v.pipe(field.queueName, v.description("Only jobs of this queue."))),
  schedule_id: v.optional(field.id("the schedule that made the jobs")),
  tag: v.optional(field.text(1, 64, "A tag that the jobs have.")),
  url_contains: v.optional(field.text(1, 255, "A part of the URL.")),
  created_after: v.optional(field.time("Only jobs created after this")),
  created_before: v.optional(field.time("Only jobs created before this")),
};

type FilterFields = v.InferOutput<ReturnType<typeof field.closed<typeof filterFields>>>;

export function filterOf(fields: FilterFields): JobFilter {
  return {
    queue: fields.queue,
    scheduleId: fields.schedule_id,
    tag: fields.tag,
    urlContains: fields.url_contains,
    createdAfter:
      fields.created_after === undefined ? undefined : (parseTime(fields.created_after) ?? undefined),
    createdBefore:
      fields.created_before === undefined ? undefined : (parseTime(fields.created_before) ?? undefined),
  };
}
