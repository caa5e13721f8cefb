/** What Errand can do with the runs of schedules: hold them, make one now, tell those to come and those that were. */
import * as v from "valibot";
import type { JobDetail } from "../jobs/job.ts";
import { viewJob } from "../jobs/view.ts";
import { previewFireTimes } from "../schedules/firing.ts";
import { isSound, revise } from "../schedules/revise.ts";
import { jobOfSchedule } from "../schedules/run.ts";
import { viewFireTime, viewOccurrence } from "../schedules/view.ts";
import type { Once, OnceResult } from "../store/store.ts";
import * as field from "./fields.ts";
import { job } from "./job-output.ts";
import { type Operation, onceOnly, operation } from "./operation.ts";
import { pageOf } from "./output-fields.ts";
import { changeSchedule, noSuchSchedule, scheduleId } from "./schedule-change.ts";
import { cronExpr, timezone } from "./schedule-input.ts";
import { fireTimes, occurrence, schedule } from "./schedule-output.ts";

const count = v.optional(field.integer(1, 100, "How many times to tell, 1 to 100; 10 by default."));
const DEFAULT_COUNT = 10;

export const scheduleRunOperations: readonly Operation[] = [
  operation({
    name: "schedules.pause",
    summary: "Pause a schedule: it makes no jobs until it is resumed",
    scope: "write",
    effect: "write",
    input: field.closed({ id: scheduleId }),
    output: schedule,
    http: { method: "POST", path: "/v1/schedules/{id}/pause", status: 200, bodyOptional: true },
    cli: { command: "schedules pause", positional: ["id"], examples: ["errand schedules pause sch_01jd…"] },
    mcp: "pause_schedule",
    problems: ["not_found"],
    run: (context, { id }) =>
      changeSchedule(context, id, (found, now) => revise(found, { ...found, paused: true }, now)),
  }),

  operation({
    name: "schedules.resume",
    summary: "Resume a paused schedule; times that passed meanwhile are not made up for",
    scope: "write",
    effect: "write",
    input: field.closed({ id: scheduleId }),
    output: schedule,
    http: { method: "POST", path: "/v1/schedules/{id}/resume", status: 200, bodyOptional: true },
    cli: { command: "schedules resume", positional: ["id"], examples: ["errand schedules resume sch_01jd…"] },
    mcp: "resume_schedule",
    problems: ["not_found"],
    run: (context, { id }) =>
      changeSchedule(context, id, (found, now) => revise(found, { ...found, paused: false }, now)),
  }),

  operation({
    name: "schedules.trigger",
    summary: "Make a job of a schedule now, also while it is paused; its due times stay as they are",
    scope: "write",
    effect: "write",
    input: field.closed({ id: scheduleId }),
    output: job,
    http: {
      method: "POST",
      path: "/v1/schedules/{id}/trigger",
      status: 200,
      location: ({ id }) => `/v1/jobs/${id}`,
      bodyOptional: true,
    },
    cli: {
      command: "schedules trigger",
      positional: ["id"],
      examples: ["errand schedules trigger sch_01jd…"],
    },
    mcp: "trigger_schedule",
    creates: true,
    problems: ["not_found", "idempotency_key_reused"],
    async run(context, { id }) {
      const { store, principal, clock, idempotency } = context;
      const now = clock.now();
      const trigger = async (once: Once<JobDetail> | null): Promise<OnceResult<JobDetail>> => {
        const made = await store.schedules.trigger(
          principal.tenant,
          id,
          (found) => ({ ...jobOfSchedule(found, null, now), idempotencyKey: idempotency?.key ?? null }),
          now,
          once,
        );
        if (made === null) throw noSuchSchedule(id);
        return made;
      };
      return onceOnly(context, (made: JobDetail) => viewJob(made, principal.scopes), trigger);
    },
  }),

  operation({
    name: "schedules.next",
    summary: "Tell the coming times of a schedule, and what daylight saving does to them",
    description: "Empty while the schedule is paused, and when it has ended or is invalid.",
    scope: "read",
    effect: "read",
    input: field.closed({ id: scheduleId, count }),
    output: fireTimes,
    http: { method: "GET", path: "/v1/schedules/{id}/next", status: 200 },
    cli: {
      command: "schedules next",
      positional: ["id"],
      examples: ["errand schedules next sch_01jd… --count 5"],
    },
    mcp: null,
    problems: ["not_found"],
    async run({ store, principal, clock }, { id, count: wanted }) {
      const found = await store.schedules.get(principal.tenant, id);
      if (found === null) throw noSuchSchedule(id);
      const times =
        found.nextRunAt === null || !isSound(found)
          ? []
          : previewFireTimes(found, clock.now(), wanted ?? DEFAULT_COUNT);
      return { data: times.map(viewFireTime) };
    },
  }),

  operation({
    name: "schedules.occurrences",
    summary: "List the ledger of a schedule: what became of each due time, latest first",
    scope: "read",
    effect: "read",
    input: field.closed({ id: scheduleId, ...field.page }),
    output: pageOf(occurrence),
    http: { method: "GET", path: "/v1/schedules/{id}/occurrences", status: 200 },
    cli: {
      command: "schedules occurrences",
      positional: ["id"],
      examples: ["errand schedules occurrences sch_01jd…"],
    },
    mcp: null,
    problems: ["not_found"],
    async run({ store, principal }, { id, ...wanted }) {
      const page = await store.schedules.occurrences(principal.tenant, id, field.pageRequest(wanted));
      if (page === null) throw noSuchSchedule(id);
      return { data: page.items.map(viewOccurrence), next_cursor: page.nextCursor };
    },
  }),

  operation({
    name: "schedules.preview",
    summary: "Tell the coming times of a cron expression, without making a schedule",
    scope: "write",
    effect: "read",
    input: field.closed({ cron_expr: cronExpr, timezone: v.optional(timezone), count }),
    output: fireTimes,
    http: { method: "POST", path: "/v1/schedules/preview", status: 200 },
    cli: null,
    mcp: "preview_schedule",
    problems: ["invalid_cron", "invalid_timezone"],
    example: { cron_expr: "30 2 * * *", timezone: "Europe/Berlin", count: 5 },
    async run({ clock }, { cron_expr: expression, timezone: zone, count: wanted }) {
      const rule = { cronExpr: expression, timezone: zone ?? "UTC", startsAt: null, endsAt: null };
      return { data: previewFireTimes(rule, clock.now(), wanted ?? DEFAULT_COUNT).map(viewFireTime) };
    },
  }),
];
