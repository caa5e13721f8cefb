/** Schedules and their ledger in SQLite; firing one is a single transaction with the jobs it makes. */
import { and, asc, desc, eq, isNull, lt, sql as sqlText } from "drizzle-orm";
import type { BetterSQLite3Database } from "drizzle-orm/better-sqlite3";
import { Problem } from "../../base/errors.ts";
import { parseJson, type RawJson, stringify } from "../../base/json.ts";
import type { JobTemplate } from "../../jobs/job.ts";
import type { Occurrence, Schedule } from "../../schedules/schedule.ts";
import type { Firing, ScheduleChange, ScheduleStore } from "../store.ts";
import type { Connection } from "./connection.ts";
import type { Directory } from "./directory.ts";
import type { InsertJob } from "./insert.ts";
import type { OnceWriter } from "./once.ts";
import { readCursor } from "./read.ts";
import type { Rows } from "./rows.ts";
import { occurrences, schedules } from "./schema.ts";
import type { Transaction, Writer } from "./writer.ts";

interface Parts {
  readonly db: Connection;
  readonly orm: BetterSQLite3Database;
  readonly writer: Writer;
  readonly directory: Directory;
  readonly rows: Rows;
  readonly insert: InsertJob;
  readonly once: OnceWriter;
}

type Row = typeof schedules.$inferSelect;

export function scheduleCommands({ db, orm, writer, directory, rows, insert, once }: Parts): ScheduleStore {
  const sql = {
    due: db.prepare<[number, number], { seq: number }>(
      "SELECT seq FROM schedules WHERE next_run_at <= ? ORDER BY next_run_at LIMIT ?",
    ),
    nextDue: db.prepare<[], { at: number | null }>(
      "SELECT min(next_run_at) AS at FROM schedules WHERE next_run_at IS NOT NULL",
    ),
    bySeq: orm
      .select()
      .from(schedules)
      .where(eq(schedules.seq, sqlText.placeholder("seq")))
      .prepare(),
    // The guard: a due time that was fired already, or whose schedule changed meanwhile, finds no row.
    rearm: db.prepare("UPDATE schedules SET next_run_at = ? WHERE id = ? AND next_run_at = ? RETURNING seq"),
    ran: db.prepare("UPDATE schedules SET last_run_at = ?, last_job_id = ? WHERE seq = ?"),
    isOpen: db.prepare<[string], { found: number }>(
      `SELECT 1 AS found FROM jobs WHERE schedule_id = ? AND status IN ('pending', 'active', 'awaiting_approval') LIMIT 1`,
    ),
    addOccurrence: db.prepare(
      "INSERT INTO occurrences (schedule, scheduled_for, outcome, job_id, lateness_ms) VALUES (?, ?, ?, ?, ?)",
    ),
  };

  function read(row: Row): Schedule {
    const { seq: _seq, tenant, template, ...rest } = row;
    return { ...rest, tenant: directory.tenant(tenant), job: readTemplate(template, rows) };
  }

  function columns(schedule: Schedule) {
    const { tenant, job, ...rest } = schedule;
    return { ...rest, tenant: directory.existingTenantId(tenant), template: writeTemplate(job, rows) };
  }

  const find = (tenantId: number, id: string) =>
    orm
      .select()
      .from(schedules)
      .where(and(eq(schedules.tenant, tenantId), eq(schedules.id, id)))
      .get();

  function refuseTakenName(tenantId: number, name: string | null, id: string): void {
    if (name === null) return;
    const other = findByName(tenantId, name);
    if (other === undefined || other.id === id) return;
    const detail = `Schedule ${other.id} has the name ${JSON.stringify(name)}. Take another name, or replace that schedule with PUT /v1/schedules/by-name/${encodeURIComponent(name)}.`;
    throw new Problem("name_taken", detail);
  }

  const findByName = (tenantId: number, name: string) =>
    orm
      .select()
      .from(schedules)
      .where(and(eq(schedules.tenant, tenantId), eq(schedules.name, name)))
      .get();

  function tell(
    transaction: Transaction,
    schedule: Schedule,
    event: ScheduleChange["event"],
    at: number,
  ): void {
    const { tenant, id, nextRunAt } = schedule;
    transaction.emit({ kind: "schedule", tenant, scheduleId: id, event, nextRunAt, at });
  }

  function fireOne(transaction: Transaction, schedule: Schedule, firing: Firing, now: number): boolean {
    const row = sql.rearm.get(firing.nextRunAt, schedule.id, firing.dueAt) as { seq: number } | undefined;
    if (row === undefined) return false;
    const tenantId = directory.existingTenantId(schedule.tenant);
    const after = { ...schedule, nextRunAt: firing.nextRunAt };
    for (const { scheduledFor, outcome, latenessMs, job } of firing.occurrences) {
      const overlaps =
        job !== null && schedule.onOverlap === "skip" && sql.isOpen.get(schedule.id) !== undefined;
      if (job === null || overlaps) {
        sql.addOccurrence.run(
          row.seq,
          scheduledFor,
          overlaps ? "skipped_overlap" : outcome,
          null,
          latenessMs,
        );
        tell(transaction, after, overlaps ? "skipped" : "missed", now);
        continue;
      }
      insert(transaction, tenantId, job, now);
      sql.addOccurrence.run(row.seq, scheduledFor, outcome, job.id, latenessMs);
      sql.ran.run(now, job.id, row.seq);
      tell(transaction, after, "fired", now);
    }
    return true;
  }

  return {
    create(schedule, onceOnly) {
      const values = columns(schedule);
      return writer.write((transaction) =>
        once(values.tenant, onceOnly, schedule.createdAt, () => {
          refuseTakenName(values.tenant, schedule.name, schedule.id);
          orm.insert(schedules).values(values).run();
          tell(transaction, schedule, "created", schedule.createdAt);
          return schedule;
        }),
      );
    },

    async get(tenant, id) {
      const row = find(directory.existingTenantId(tenant), id);
      return row === undefined ? null : read(row);
    },

    async getByName(tenant, name) {
      const row = findByName(directory.existingTenantId(tenant), name);
      return row === undefined ? null : read(row);
    },

    async list(tenant, page) {
      const before = page.cursor === null ? null : readCursor(page.cursor);
      const found = orm
        .select()
        .from(schedules)
        .where(
          and(
            eq(schedules.tenant, directory.existingTenantId(tenant)),
            before === null ? undefined : lt(schedules.seq, before),
          ),
        )
        .orderBy(desc(schedules.seq))
        .limit(page.limit + 1)
        .all();
      const items = found.slice(0, page.limit);
      return {
        items: items.map(read),
        nextCursor: found.length > page.limit ? String(items.at(-1)?.seq) : null,
      };
    },

    update(tenant, id, rule) {
      const tenantId = directory.existingTenantId(tenant);
      return writer.write((transaction) => {
        const row = find(tenantId, id);
        if (row === undefined) return null;
        const before = read(row);
        const after = rule(before);
        if (after === before) return before;
        refuseTakenName(tenantId, after.name, id);
        orm.update(schedules).set(columns(after)).where(eq(schedules.seq, row.seq)).run();
        tell(transaction, after, "updated", after.updatedAt);
        return after;
      });
    },

    remove(tenant, id, now) {
      const tenantId = directory.existingTenantId(tenant);
      return writer.write((transaction) => {
        const row = find(tenantId, id);
        if (row === undefined) return false;
        orm.delete(schedules).where(eq(schedules.seq, row.seq)).run();
        tell(transaction, { ...read(row), nextRunAt: null }, "deleted", now);
        return true;
      });
    },

    async occurrences(tenant, id, page) {
      const row = find(directory.existingTenantId(tenant), id);
      if (row === undefined) return null;
      const before = page.cursor === null ? null : readCursor(page.cursor);
      const found = orm
        .select()
        .from(occurrences)
        .where(
          and(
            eq(occurrences.schedule, row.seq),
            before === null ? undefined : lt(occurrences.scheduledFor, before),
          ),
        )
        .orderBy(desc(occurrences.scheduledFor))
        .limit(page.limit + 1)
        .all();
      const items = found
        .slice(0, page.limit)
        .map(({ schedule: _schedule, ...occurrence }): Occurrence => occurrence);
      return { items, nextCursor: found.length > page.limit ? String(items.at(-1)?.scheduledFor) : null };
    },

    async due(now, limit) {
      return sql.due.all(now, limit).flatMap(({ seq }) => {
        const row = sql.bySeq.get({ seq });
        return row === undefined ? [] : [read(row)];
      });
    },

    async nextDueAt() {
      return sql.nextDue.get()?.at ?? null;
    },

    fire(firings, now) {
      return writer.write((transaction) =>
        firings.map(({ schedule, firing }) => fireOne(transaction, schedule, firing, now)),
      );
    },

    async unarmed() {
      return orm
        .select()
        .from(schedules)
        .where(and(eq(schedules.paused, false), isNull(schedules.nextRunAt)))
        .orderBy(asc(schedules.seq))
        .all()
        .map(read);
    },
  };
}

/** A template as it is stored: JSON with the payloads' own bytes, and secret-bearing headers sealed. */
function writeTemplate(job: JobTemplate, rows: Rows): string {
  return stringify({
    ...job,
    payload: job.payload ?? undefined,
    target: job.target === null ? null : { ...job.target, headers: rows.sealHeaders(job.target.headers) },
    steps: job.steps.map((step) => ({
      ...step,
      payload: step.payload ?? undefined,
      headers: rows.sealHeaders(step.headers),
    })),
  });
}

type Stored<T> = Omit<T, "headers" | "payload"> & { headers: string | null; payload?: RawJson };

/** No payload is a missing key, so that the payload `null` stays what it is. */
function readTemplate(text: string, rows: Rows): JobTemplate {
  const stored = parseJson(text, (path) => path === "payload" || path === "steps/[]/payload") as Omit<
    JobTemplate,
    "payload" | "target" | "steps"
  > & {
    payload?: RawJson;
    target: Stored<NonNullable<JobTemplate["target"]>> | null;
    steps: Stored<JobTemplate["steps"][number]>[];
  };
  return {
    ...stored,
    payload: stored.payload ?? null,
    target:
      stored.target === null ? null : { ...stored.target, headers: rows.openHeaders(stored.target.headers) },
    steps: stored.steps.map((step) => ({
      ...step,
      payload: step.payload ?? null,
      headers: rows.openHeaders(step.headers),
    })),
  };
}
