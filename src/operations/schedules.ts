/** What Errand can do with schedules. */
import * as v from "valibot";
import { Problem } from "../base/errors.ts";
import { newId } from "../base/ids.ts";
import { METHODS } from "../jobs/job.ts";
import { nextFireTime } from "../schedules/firing.ts";
import { MISSED_POLICIES, OVERLAP_POLICIES, type Schedule } from "../schedules/schedule.ts";
import { viewSchedule } from "../schedules/view.ts";
import * as field from "./fields.ts";
import { urlsOf } from "./job-input.ts";
import { pageOf, timeOrNull, timeOut } from "./job-output.ts";
import { type Operation, onceOnly, operation } from "./operation.ts";
import { checkSchedule, scheduleFields, scheduleName, specOf } from "./schedule-input.ts";
import { refuseBlocked } from "./targets.ts";

const scheduleId = field.id("a schedule");
const textOrNull = v.nullable(v.string());

const schedule = v.pipe(
  v.object({
    id: v.string(),
    name: textOrNull,
    cron_expr: v.string(),
    timezone: v.string(),
    description: v.pipe(v.string(), v.description("The expression in English.")),
    url: textOrNull,
    method: v.nullable(v.picklist(METHODS)),
    headers: v.record(v.string(), v.string()),
    payload: v.unknown(),
    max_attempts: v.number(),
    timeout: v.string(),
    retry_delays: v.nullable(v.array(v.string())),
    no_retry_on: v.array(v.union([v.number(), v.string()])),
    queue: v.string(),
    tags: v.array(v.string()),
    callback_url: textOrNull,
    requires_approval: v.boolean(),
    approval_timeout: textOrNull,
    steps: v.nullable(v.array(v.record(v.string(), v.unknown()))),
    on_missed: v.picklist(MISSED_POLICIES),
    on_overlap: v.picklist(OVERLAP_POLICIES),
    starts_at: timeOrNull,
    ends_at: timeOrNull,
    paused: v.boolean(),
    next_run_at: timeOrNull,
    last_run_at: timeOrNull,
    last_job_id: textOrNull,
    created_at: timeOut,
    updated_at: timeOut,
  }),
  v.title("Schedule"),
);

function noSuchSchedule(id: string): Problem {
  return new Problem("not_found", `There is no schedule ${id} in this account and mode.`);
}

export const scheduleOperations: readonly Operation[] = [
  operation({
    name: "schedules.create",
    summary: "Create a schedule: a cron expression that makes a job each time it fires",
    scope: "write",
    effect: "write",
    input: field.closed({ name: v.optional(scheduleName), ...scheduleFields }),
    output: schedule,
    check: checkSchedule,
    http: { method: "POST", path: "/v1/schedules", status: 201, location: ({ id }) => `/v1/schedules/${id}` },
    cli: {
      command: "schedules create",
      examples: [
        `errand schedules create --cron-expr "0 9 * * 1" --timezone Europe/Berlin --url https://example.com/report`,
      ],
    },
    mcp: "create_schedule",
    creates: true,
    problems: [
      "invalid_cron",
      "invalid_timezone",
      "invalid_url",
      "blocked_target",
      "name_taken",
      "idempotency_key_reused",
    ],
    example: {
      cron_expr: "0 9 * * 1",
      timezone: "Europe/Berlin",
      url: "https://example.com/report",
      payload: {},
    },
    async run(context, { name, ...fields }) {
      refuseBlocked(context, urlsOf(fields));
      const now = context.clock.now();
      const spec = specOf(fields, name ?? null);
      const made: Schedule = {
        ...spec,
        id: newId("sch", now),
        tenant: context.principal.tenant,
        nextRunAt: spec.paused ? null : nextFireTime(spec, now),
        lastRunAt: null,
        lastJobId: null,
        createdAt: now,
        updatedAt: now,
      };
      return onceOnly(context, viewSchedule, (once) => context.store.schedules.create(made, once));
    },
  }),

  operation({
    name: "schedules.list",
    summary: "List schedules, newest first",
    scope: "read",
    effect: "read",
    input: field.closed(field.page),
    output: pageOf(schedule),
    http: { method: "GET", path: "/v1/schedules", status: 200 },
    cli: { command: "schedules list", examples: ["errand schedules list"] },
    mcp: "list_schedules",
    async run(context, { limit, cursor }) {
      const page = await context.store.schedules.list(context.principal.tenant, {
        limit: limit ?? 20,
        cursor: cursor ?? null,
      });
      return { data: page.items.map(viewSchedule), next_cursor: page.nextCursor };
    },
  }),

  operation({
    name: "schedules.get",
    summary: "Read a schedule",
    scope: "read",
    effect: "read",
    input: field.closed({ id: scheduleId }),
    output: schedule,
    http: { method: "GET", path: "/v1/schedules/{id}", status: 200 },
    cli: { command: "schedules get", positional: ["id"], examples: ["errand schedules get sch_01jd…"] },
    mcp: "get_schedule",
    problems: ["not_found"],
    async run(context, { id }) {
      const found = await context.store.schedules.get(context.principal.tenant, id);
      if (found === null) throw noSuchSchedule(id);
      return viewSchedule(found);
    },
  }),

  operation({
    name: "schedules.delete",
    summary: "Remove a schedule; its jobs stay",
    scope: "write",
    effect: "destructive",
    input: field.closed({ id: scheduleId }),
    output: null,
    http: { method: "DELETE", path: "/v1/schedules/{id}", status: 204 },
    cli: { command: "schedules delete", positional: ["id"], examples: ["errand schedules delete sch_01jd…"] },
    mcp: "delete_schedule",
    problems: ["not_found"],
    async run(context, { id }) {
      const removed = await context.store.schedules.remove(context.principal.tenant, id, context.clock.now());
      if (!removed) throw noSuchSchedule(id);
      return null;
    },
  }),
];
