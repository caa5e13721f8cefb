/** What Errand can do with schedules: create, read, change, remove. What concerns their runs is in schedule-runs.ts. */

import * as v from "valibot";
import { newId } from "../base/ids.ts";
import { firstRun, revise } from "../schedules/revise.ts";
import type { Schedule, ScheduleSpec } from "../schedules/schedule.ts";
import { viewSchedule } from "../schedules/view.ts";
import * as field from "./fields.ts";
import { urlsOf } from "./job-input.ts";
import { type Context, type Operation, onceOnly, operation } from "./operation.ts";
import { pageOf } from "./output-fields.ts";
import { changeSchedule, decideDue, noSuchSchedule, scheduleId } from "./schedule-change.ts";
import {
  checkSchedule,
  patched,
  patchFields,
  scheduleFields,
  scheduleName,
  specOf,
} from "./schedule-input.ts";
import { replacedSchedule, schedule } from "./schedule-output.ts";
import { scheduleRunOperations } from "./schedule-runs.ts";
import { refuseBlocked } from "./targets.ts";

const problems = ["invalid_cron", "invalid_timezone", "invalid_url", "blocked_target"] as const;

const example = {
  cron_expr: "0 9 * * 1",
  timezone: "Europe/Berlin",
  url: "https://example.com/report",
  payload: {},
};

function newSchedule({ principal }: Context, spec: ScheduleSpec, now: number): Schedule {
  return {
    ...spec,
    id: newId("sch", now),
    tenant: principal.tenant,
    nextRunAt: firstRun(spec, now),
    lastRunAt: null,
    lastJobId: null,
    createdAt: now,
    updatedAt: now,
  };
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
    problems: [...problems, "name_taken", "idempotency_key_reused"],
    example,
    async run(context, { name, ...fields }) {
      refuseBlocked(context, urlsOf(fields));
      const made = newSchedule(context, specOf(fields, name ?? null), context.clock.now());
      return onceOnly(context, viewSchedule, (once) => context.store.schedules.create(made, once));
    },
  }),

  operation({
    name: "schedules.replace",
    summary: "Create a schedule under a name, or replace the one that has it: what a deploy script calls",
    description:
      "Doing it again changes nothing: change says what was done, and an unchanged schedule is not written and keeps its next run. Fields that are left out get their defaults, but for paused: a schedule that somebody paused stays so unless paused is false.",
    scope: "write",
    effect: "write",
    input: field.closed({ name: scheduleName, ...scheduleFields }),
    output: replacedSchedule,
    check: checkSchedule,
    http: {
      method: "PUT",
      path: "/v1/schedules/by-name/{name}",
      status: ({ change }) => (change === "created" ? 201 : 200),
      statuses: [200, 201],
      location: ({ id }) => `/v1/schedules/${id}`,
    },
    cli: null,
    mcp: null,
    problems,
    example: { name: "weekly-report", ...example },
    async run(context, { name, ...fields }) {
      refuseBlocked(context, urlsOf(fields));
      const now = context.clock.now();
      const { schedule: after, previous } = await decideDue(context, now, (decided) =>
        context.store.schedules.createOrUpdate(
          context.principal.tenant,
          name,
          () => newSchedule(context, specOf(fields, name), now),
          decided((found) => {
            const paused = fields.paused ?? found.paused;
            return revise(found, { ...specOf(fields, name, found), paused }, now);
          }),
        ),
      );
      const unchanged = previous === after ? ("unchanged" as const) : ("replaced" as const);
      return { ...viewSchedule(after), change: previous === null ? ("created" as const) : unchanged };
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
    async run({ store, principal }, wanted) {
      const page = await store.schedules.list(principal.tenant, field.pageRequest(wanted));
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
    name: "schedules.update",
    summary: "Change some fields of a schedule",
    description:
      "Fields that are left out stay. null clears name, starts_at, ends_at, retry_delays, callback_url and approval_timeout; a payload of null is sent as null, and method GET, which sends none, drops the payload. steps take the place of url, method and headers, and url that of steps. A change of the expression, the zone, starts_at, ends_at or paused sets the next run anew, from now on.",
    scope: "write",
    effect: "write",
    input: field.closed({ id: scheduleId, ...patchFields }),
    output: schedule,
    http: { method: "PATCH", path: "/v1/schedules/{id}", status: 200 },
    cli: {
      command: "schedules update",
      positional: ["id"],
      examples: [`errand schedules update sch_01jd… --cron-expr "30 9 * * 1"`],
    },
    mcp: "update_schedule",
    problems: ["not_found", ...problems, "name_taken"],
    example: { id: "sch_01jd…", cron_expr: "30 9 * * 1" },
    async run(context, { id, ...patch }) {
      const { url, callback_url, steps } = patch;
      refuseBlocked(context, urlsOf({ url, callback_url: callback_url ?? undefined, steps }));
      return changeSchedule(context, id, (found, now) => revise(found, patched(found, patch), now));
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

  ...scheduleRunOperations,
];
