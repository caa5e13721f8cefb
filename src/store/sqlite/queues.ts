/** Queues and usage in SQLite. */
import { and, asc, desc, eq, like, lt, ne, sql } from "drizzle-orm";
import type { BetterSQLite3Database } from "drizzle-orm/better-sqlite3";
import { CALLBACK_QUEUE } from "../../jobs/callback.ts";
import { type JobStatus, STATUSES } from "../../jobs/job.ts";
import type { Queue, QueueSettings, QueueStore } from "../store.ts";
import type { Connection } from "./connection.ts";
import type { Directory } from "./directory.ts";
import { readCursor } from "./read.ts";
import { queueCounts, queues, usage } from "./schema.ts";
import type { Transaction, Writer } from "./writer.ts";

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
       SELECT (SELECT due_at FROM jobs WHERE lane = lanes.id ORDER BY due_at LIMIT 1) AS due
       FROM lanes WHERE queue = ?) WHERE due <= ?`,
  );

  // Building a query costs many times what running it does.
  const byName = orm
    .select()
    .from(queues)
    .where(and(eq(queues.tenant, sql.placeholder("tenant")), eq(queues.name, sql.placeholder("name"))))
    .prepare();
  const countsOf = orm
    .select({ status: queueCounts.status, count: queueCounts.count })
    .from(queueCounts)
    .where(eq(queueCounts.queue, sql.placeholder("queue")))
    .prepare();

  function read(row: typeof queues.$inferSelect, now: number): Queue {
    const counts = Object.fromEntries(STATUSES.map((status) => [status, 0])) as Record<JobStatus, number>;
    for (const { status, count } of countsOf.all({ queue: row.id })) counts[status] = count;
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

  /** Callbacks wait in a queue of their own, which nobody sees. */
  const isListed = (tenantId: number, name: string) =>
    name !== CALLBACK_QUEUE && directory.queueId(tenantId, name) !== null;

  function rowOf(tenantId: number, name: string) {
    const row = byName.get({ tenant: tenantId, name });
    if (row === undefined) throw new Error(`no queue ${name}`);
    return row;
  }

  /** A setting that is left out stays what it was. */
  function change(
    transaction: Transaction,
    tenantId: number,
    name: string,
    { concurrency, rateLimit, paused }: Partial<QueueSettings>,
    now: number,
  ): Queue {
    const before = rowOf(tenantId, name);
    const after = {
      ...before,
      ...(concurrency === undefined ? {} : { concurrency }),
      ...(rateLimit === undefined
        ? {}
        : { rateLimit: rateLimit?.limit ?? null, ratePeriod: rateLimit?.period ?? null }),
      ...(paused === undefined ? {} : { paused }),
    };
    orm.update(queues).set(after).where(eq(queues.id, before.id)).run();
    transaction.emit({
      kind: "queue",
      limits: { id: before.id, concurrency: after.concurrency, paused: after.paused },
    });
    return read(after, now);
  }

  return {
    async list(tenant, page, now) {
      const tenantId = directory.existingTenantId(tenant);
      const before = page.cursor === null ? undefined : lt(queues.id, readCursor(page.cursor));
      const rows = orm
        .select()
        .from(queues)
        .where(and(eq(queues.tenant, tenantId), ne(queues.name, CALLBACK_QUEUE), before))
        .orderBy(desc(queues.id))
        .limit(page.limit + 1)
        .all();
      const items = rows.slice(0, page.limit);
      return {
        items: items.map((row) => read(row, now)),
        nextCursor: rows.length > page.limit ? String(items.at(-1)?.id) : null,
      };
    },

    async get(tenant, name, now) {
      const tenantId = directory.existingTenantId(tenant);
      return isListed(tenantId, name) ? read(rowOf(tenantId, name), now) : null;
    },

    configure(tenant, name, settings, now) {
      const tenantId = directory.existingTenantId(tenant);
      return writer.write((transaction) => {
        directory.ensureQueue(tenantId, name, now);
        return change(transaction, tenantId, name, settings, now);
      });
    },

    change(tenant, name, settings, now) {
      const tenantId = directory.existingTenantId(tenant);
      return writer.write((transaction) =>
        isListed(tenantId, name) ? change(transaction, tenantId, name, settings, now) : null,
      );
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
