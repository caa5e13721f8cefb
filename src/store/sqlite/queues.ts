/** Queues and usage in SQLite. */
import { and, asc, eq, like, ne } from "drizzle-orm";
import type { BetterSQLite3Database } from "drizzle-orm/better-sqlite3";
import { CALLBACK_QUEUE } from "../../jobs/callback.ts";
import { type JobStatus, STATUSES } from "../../jobs/job.ts";
import type { Queue, QueueStore } from "../store.ts";
import type { Connection } from "./connection.ts";
import type { Directory } from "./directory.ts";
import { queueCounts, queues, usage } from "./schema.ts";
import type { Writer } from "./writer.ts";

interface Parts {
  readonly db: Connection;
  readonly orm: BetterSQLite3Database;
  readonly writer: Writer;
  readonly directory: Directory;
}

export function queueCommands({ db, orm, writer, directory }: Parts): QueueStore {
  const oldestDue = db.prepare<[number, number], { at: number | null }>(
    // One seek in jobs_due for each lane of the queue.
    `SELECT min(due) AS at FROM (
       SELECT (SELECT due_at FROM jobs WHERE lane = lanes.id AND status = 'pending' ORDER BY due_at LIMIT 1) AS due
       FROM lanes WHERE queue = ?) WHERE due <= ?`,
  );

  function read(row: typeof queues.$inferSelect, now: number): Queue {
    const counts = Object.fromEntries(STATUSES.map((status) => [status, 0])) as Record<JobStatus, number>;
    for (const { status, count } of orm
      .select()
      .from(queueCounts)
      .where(eq(queueCounts.queue, row.id))
      .all()) {
      counts[status] = count;
    }
    return {
      name: row.name,
      concurrency: row.concurrency,
      rateLimit:
        row.rateLimit === null || row.ratePeriod === null
          ? null
          : { limit: row.rateLimit, period: row.ratePeriod },
      paused: row.paused,
      counts,
      oldestDueAt: oldestDue.get(row.id, now)?.at ?? null,
    };
  }

  const rowOf = (tenantId: number, name: string) =>
    orm
      .select()
      .from(queues)
      .where(and(eq(queues.tenant, tenantId), eq(queues.name, name)))
      .get();

  return {
    async list(tenant, now) {
      const tenantId = directory.existingTenantId(tenant);
      const rows = orm
        .select()
        .from(queues)
        .where(and(eq(queues.tenant, tenantId), ne(queues.name, CALLBACK_QUEUE)))
        .orderBy(asc(queues.name))
        .all();
      return rows.map((row) => read(row, now));
    },

    async get(tenant, name, now) {
      const row = rowOf(directory.existingTenantId(tenant), name);
      return row === undefined ? null : read(row, now);
    },

    configure(tenant, name, settings, now) {
      const tenantId = directory.existingTenantId(tenant);
      return writer.write((transaction) => {
        const id = directory.ensureQueue(tenantId, name, now);
        const { concurrency, rateLimit, paused } = settings;
        orm
          .update(queues)
          .set({
            // A setting that is left out stays what it was.
            name,
            ...(concurrency === undefined ? {} : { concurrency }),
            ...(rateLimit === undefined
              ? {}
              : { rateLimit: rateLimit?.limit ?? null, ratePeriod: rateLimit?.period ?? null }),
            ...(paused === undefined ? {} : { paused }),
          })
          .where(eq(queues.id, id))
          .run();
        const row = rowOf(tenantId, name);
        if (row === undefined) throw new Error(`no queue ${name}`);
        transaction.emit({
          kind: "queue",
          limits: { id, concurrency: row.concurrency, paused: row.paused },
        });
        return read(row, now);
      });
    },

    async usage(tenant, month) {
      const rows = orm
        .select()
        .from(usage)
        .where(and(eq(usage.tenant, directory.existingTenantId(tenant)), like(usage.day, `${month}-%`)))
        .orderBy(asc(usage.day))
        .all();
      return rows.map(({ day, jobs, deliveries }) => ({ day, jobs, deliveries }));
    },
  };
}
