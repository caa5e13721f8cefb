/** Firing schedules in SQLite: what is due, and one transaction for the jobs, the ledger and the next due time. */
import { desc, eq, lte, sql as sqlText } from "drizzle-orm";
import type { BetterSQLite3Database } from "drizzle-orm/better-sqlite3";
import { createdJob } from "../../jobs/created.ts";
import type { JobDetail } from "../../jobs/job.ts";
import type { Firing } from "../../schedules/run.ts";
import type { Schedule } from "../../schedules/schedule.ts";
import type { ScheduleStore } from "../store.ts";
import type { Connection } from "./connection.ts";
import type { Directory } from "./directory.ts";
import type { InsertJob } from "./insert.ts";
import { ANSWER_KEPT_MS, type OnceWriter } from "./once.ts";
import { countOfPage } from "./read.ts";
import { type ScheduleRows, tell } from "./schedule-rows.ts";
import { schedules } from "./schema.ts";
import type { Transaction, Writer } from "./writer.ts";

export interface FiringParts {
  readonly db: Connection;
  readonly orm: BetterSQLite3Database;
  readonly writer: Writer;
  readonly directory: Directory;
  readonly insert: InsertJob;
  readonly once: OnceWriter;
}

type FiringCommands = Pick<ScheduleStore, "due" | "nextDueAt" | "fire" | "trigger">;

export function firingCommands(parts: FiringParts, rows: ScheduleRows): FiringCommands {
  const { db, orm, writer, directory, insert, once } = parts;
  const sql = {
    // How long a text is stands before it: none is read for this.
    dueSizes: db.prepare<[number, number], { bytes: number }>(
      "SELECT octet_length(template) AS bytes FROM schedules WHERE next_run_at <= ? ORDER BY next_run_at DESC LIMIT ?",
    ),
    // A range of schedules_due that stops at the limit: what is not due is not looked at.
    due: orm
      .select()
      .from(schedules)
      .where(lte(schedules.nextRunAt, sqlText.placeholder("now")))
      .orderBy(desc(schedules.nextRunAt))
      .limit(sqlText.placeholder("limit"))
      .prepare(),
    nextDue: db.prepare<[], { at: number | null }>(
      "SELECT min(next_run_at) AS at FROM schedules WHERE next_run_at IS NOT NULL",
    ),
    byId: orm
      .select()
      .from(schedules)
      .where(eq(schedules.id, sqlText.placeholder("id")))
      .prepare(),
    // The guard: a due time that was decided already, or whose schedule changed meanwhile, finds no row.
    rearm: db.prepare<[number | null, string, number], { seq: number }>(
      "UPDATE schedules SET next_run_at = ? WHERE id = ? AND next_run_at = ? RETURNING seq",
    ),
    answered: db.prepare<[number, string, number], { found: number }>(
      "SELECT 1 AS found FROM answers WHERE tenant = ? AND key = ? AND created_at > ?",
    ),
    ran: db.prepare("UPDATE schedules SET last_run_at = ?, last_job_id = ? WHERE id = ?"),
    isOpen: db.prepare<[string], { found: number }>(
      `SELECT 1 AS found FROM jobs WHERE schedule_id = ? AND status IN ('pending', 'active', 'awaiting_approval') LIMIT 1`,
    ),
    // After the clock was set back a due time can come again: it may get its job if it had none, and never a second one.
    record: db.prepare(
      `INSERT INTO occurrences (schedule, scheduled_for, outcome, job_id, lateness_ms) VALUES (?, ?, ?, ?, ?)
       ON CONFLICT (schedule, scheduled_for) DO UPDATE
         SET outcome = excluded.outcome, job_id = excluded.job_id, lateness_ms = excluded.lateness_ms
         WHERE job_id IS NULL AND excluded.job_id IS NOT NULL`,
    ),
  };

  function fireOne(transaction: Transaction, schedule: Schedule, firing: Firing, now: number): boolean {
    const row = sql.rearm.get(firing.nextRunAt, schedule.id, firing.dueAt);
    if (row === undefined) return false;
    const tenantId = directory.existingTenantId(schedule.tenant);
    const after = { ...schedule, nextRunAt: firing.nextRunAt };
    let missed = 0;
    for (const { scheduledFor, outcome, latenessMs, job } of firing.occurrences) {
      if (job === null) {
        missed += sql.record.run(row.seq, scheduledFor, outcome, null, latenessMs).changes;
      } else if (schedule.onOverlap === "skip" && sql.isOpen.get(schedule.id) !== undefined) {
        const isNew = sql.record.run(row.seq, scheduledFor, "skipped_overlap", null, latenessMs).changes > 0;
        if (isNew) tell(transaction, after, "skipped", now);
      } else if (sql.record.run(row.seq, scheduledFor, outcome, job.id, latenessMs).changes > 0) {
        insert(transaction, tenantId, job, now);
        sql.ran.run(now, job.id, schedule.id);
        tell(transaction, after, "fired", now);
      }
    }
    if (missed > 0) tell(transaction, after, "missed", now);
    return true;
  }

  return {
    async due(now, limit) {
      const count = countOfPage(sql.dueSizes.all(now, limit), limit);
      return sql.due.all({ now, limit: count }).map((row) => rows.read(row));
    },

    async nextDueAt() {
      return sql.nextDue.get()?.at ?? null;
    },

    fire(firings, now) {
      return writer.write(
        (transaction) => firings.map(({ schedule, firing }) => fireOne(transaction, schedule, firing, now)),
        false,
      );
    },

    trigger(tenant, id, run, now, onceOnly) {
      const tenantId = directory.existingTenantId(tenant);
      return writer.write((transaction) => {
        const row = sql.byId.get({ id });
        const schedule = row === undefined || row.tenant !== tenantId ? null : rows.read(row);
        // Who repeats a call gets its answer, also when the schedule is gone since.
        const isAnswered =
          onceOnly !== null && sql.answered.get(tenantId, onceOnly.key, now - ANSWER_KEPT_MS) !== undefined;
        if (schedule === null && !isAnswered) return null;
        return once(tenantId, onceOnly, now, (): JobDetail => {
          if (schedule === null) throw new Error(`the kept answer of ${onceOnly?.key} was not found again`);
          const job = run(schedule);
          insert(transaction, tenantId, job, now);
          sql.ran.run(now, job.id, id);
          tell(transaction, schedule, "triggered", now);
          return createdJob(tenant, job, now);
        });
      });
    },
  };
}
