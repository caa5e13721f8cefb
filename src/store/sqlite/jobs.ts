/** What users do to jobs: enqueue, read, list, and apply the rules of the lifecycle to one or to many. */

import { durationMs } from "../../base/duration.ts";
import type { Tenant } from "../../base/tenant.ts";
import { createdJob } from "../../jobs/created.ts";
import type { NewJob } from "../../jobs/job.ts";
import type { Enqueued, JobStore, Rule } from "../store.ts";
import type { WriteCallback } from "./callback.ts";
import type { Connection } from "./connection.ts";
import type { Directory } from "./directory.ts";
import type { InsertJob } from "./insert.ts";
import type { OnceWriter } from "./once.ts";
import type { JobReader } from "./read.ts";
import type { JobRow, Rows } from "./rows.ts";
import type { WriteTransition } from "./transition.ts";
import type { Transaction, Writer } from "./writer.ts";

interface Parts {
  readonly db: Connection;
  readonly writer: Writer;
  readonly directory: Directory;
  readonly rows: Rows;
  readonly reader: JobReader;
  readonly insert: InsertJob;
  readonly transition: WriteTransition;
  readonly callback: WriteCallback;
  readonly once: OnceWriter;
}

/** Jobs changed in one transaction by a bulk command: a few milliseconds, so that nobody notices. */
const BULK_BATCH = 200;

export function jobCommands(parts: Parts): JobStore {
  const { db, writer, directory, rows, reader, insert, transition, callback, once } = parts;
  const duplicate = db.prepare<[number, string, number], JobRow>(
    // The rule of dedupe_key: unfinished, or young enough and not cancelled.
    `SELECT * FROM jobs WHERE tenant = ? AND dedupe_key = ? AND callback_of IS NULL
       AND (status IN ('pending', 'active', 'awaiting_approval') OR (status <> 'cancelled' AND created_at > ?))
     ORDER BY seq DESC LIMIT 1`,
  );

  function enqueueOne(
    transaction: Transaction,
    tenant: Tenant,
    tenantId: number,
    job: NewJob,
    now: number,
  ): Enqueued {
    if (job.dedupeKey !== null) {
      const known = duplicate.get(tenantId, job.dedupeKey, now - durationMs(job.dedupeWindow));
      if (known !== undefined) return { job: reader.detail(known), deduplicated: true };
    }
    insert(transaction, tenantId, job, now);
    return { job: createdJob(tenant, job, now), deduplicated: false };
  }

  /** The rule sees the row as it is in this transaction; the guard of the update then cannot fail. */
  function apply(transaction: Transaction, row: JobRow, rule: Rule): void {
    const step = reader.currentStep(row);
    const changes = rule(rows.job(row, step), step === null ? null : rows.step(step));
    transition(transaction, row, changes);
    callback(transaction, row, changes);
  }

  return {
    enqueue(tenant, jobs, now, onceOnly) {
      const tenantId = directory.existingTenantId(tenant);
      return writer.write((transaction) =>
        once(tenantId, onceOnly, now, () =>
          jobs.map((job) => enqueueOne(transaction, tenant, tenantId, job, now)),
        ),
      );
    },

    async get(tenant, id) {
      const row = reader.row(tenant, id);
      return row === undefined ? null : reader.detail(row);
    },

    list: (tenant, filter, page) => reader.page(tenant, filter, page),

    async attempts(tenant, id, page) {
      const row = reader.row(tenant, id);
      return row === undefined ? null : reader.attempts(row, page);
    },

    change(tenant, id, rule) {
      return writer.write((transaction) => {
        const row = reader.row(tenant, id);
        if (row === undefined) return null;
        apply(transaction, row, rule);
        return reader.detail(reader.rowBySeq(row.seq) ?? row);
      });
    },

    async changeAll(tenant, filter, from, rule) {
      let changed = 0;
      let before: number | null = null;
      for (;;) {
        const found: JobRow[] = await reader.search(
          tenant,
          { ...filter, statuses: from },
          BULK_BATCH,
          before,
        );
        const last = found.at(-1);
        if (last === undefined) return changed;
        changed += await writer.write((transaction) => {
          // Between the search and this transaction a job may have moved on; those that did are left alone.
          const still = found.flatMap(({ seq, id }) => {
            const row = reader.rowBySeq(seq);
            return row !== undefined && row.id === id && from.includes(row.status) ? [row] : [];
          });
          for (const row of still) apply(transaction, row, rule);
          return still.length;
        });
        before = last.seq;
      }
    },
  };
}
