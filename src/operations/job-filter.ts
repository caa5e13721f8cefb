/** The filters of job lists, which bulk operations share. */
import * as v from "valibot";
import { parseTime } from "../base/clock.ts";
import type { JobFilter } from "../store/store.ts";
import * as field from "./fields.ts";

export const filterFields = {
  queue: v.optional(field.queueName),
  schedule_id: v.optional(field.id("the schedule that made the jobs")),
  tag: v.optional(field.text(1, 64, "A tag that the jobs have.")),
  url_contains: v.optional(field.text(1, 255, "A part of the URL.")),
  created_after: v.optional(field.time),
  created_before: v.optional(field.time),
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
