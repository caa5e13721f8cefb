/** What users do to jobs: enqueue, read, list, and apply the rules of the lifecycle to one or to many. */

import { durationMs } from "../../base/duration.ts";
import { Problem } from "../../base/errors.ts";
import type { RawJson } from "../../base/json.ts";
import type { Tenant } from "../../base/tenant.ts";
import { createdJob } from "../../jobs/created.ts";
import type { JobDetail, NewJob, StoredResponse } from "../../jobs/job.ts";
import type { Headers } from "../../jobs/outcome.ts";
import type { Enqueued, JobStore, Rule } from "../store.ts";
import type { WriteCallback } from "./callback.ts";
import type { Connection } from "./connection.ts";
import type { Directory } from "./directory.ts";
import type { InsertJob } from "./insert.ts";
import type { OnceWriter } from "./once.ts";
import { type JobReader, PAGE_BYTES } from "./read.ts";
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

/** Jobs changed in one transaction by a bulk command, fewer where their callbacks are large: nobody notices. */
const BULK_BATCH = 200;

/** A batch is answered with its jobs, those that a dedupe_key finds included; these may be large, with their responses. */
const MAX_REPEATED_BYTES = 16 * 1024 * 1024;

export function jobCommands(parts: Parts): JobStore {
  const { db, writer, directory, rows, reader, insert, transition, callback, once } = parts;
  // The rule of dedupe_key: unfinished, or young enough and not cancelled. One seek in the index of each.
  const unfinished = db.prepare<[number, string], JobRow>(
    `SELECT * FROM jobs WHERE tenant = ? AND dedupe_key = ? AND status IN ('pending', 'active', 'awaiting_approval')
     ORDER BY seq DESC LIMIT 1`,
  );
  const young = db.prepare<[number, string, number], JobRow>(
    `SELECT * FROM jobs WHERE tenant = ? AND dedupe_key = ? AND status <> 'cancelled' AND created_at > ?
     ORDER BY created_at DESC LIMIT 1`,
  );

  /** What each create comes to, before anything is written: a new job, or the one that its dedupe_key finds. */
  function plan(tenant: Tenant, tenantId: number, jobs: readonly NewJob[], now: number): Enqueued[] {
    const created = new Map<string, JobDetail>();
    const read = new Map<number, JobDetail>();
    const find = (key: string, since: number): JobDetail | undefined => {
      const row = unfinished.get(tenantId, key) ?? young.get(tenantId, key, since);
      if (row === undefined) return undefined;
      const detail = read.get(row.seq) ?? reader.detail(row);
      read.set(row.seq, detail);
      return detail;
    };
    let repeatedBytes = 0;
    return jobs.map((job) => {
      const key = job.dedupeKey;
      const known =
        key === null ? undefined : (created.get(key) ?? find(key, now - durationMs(job.dedupeWindow)));
      if (known !== undefined) {
        repeatedBytes += sizeOf(known);
        if (jobs.length > 1 && repeatedBytes > MAX_REPEATED_BYTES) throw tooMuchToRepeat();
        return { job: known, deduplicated: true };
      }
      const detail = createdJob(tenant, job, now);
      if (key !== null) created.set(key, detail);
      return { job: detail, deduplicated: false };
    });
  }

  /** The rule sees the row as it is in this transaction; the guard of the update then cannot fail. As {@link WriteCallback}. */
  function apply(transaction: Transaction, row: JobRow, rule: Rule): number {
    const step = reader.currentStep(row);
    const changes = rule(rows.job(row, step), step === null ? null : rows.step(step));
    transition(transaction, row, changes);
    return callback(transaction, row, changes);
  }

  return {
    enqueue(tenant, jobs, now, onceOnly) {
      const tenantId = directory.existingTenantId(tenant);
      return writer.write((transaction) =>
        once(tenantId, onceOnly, now, () => {
          const enqueued = plan(tenant, tenantId, jobs, now);
          for (const [i, { deduplicated }] of enqueued.entries())
            if (!deduplicated) insert(transaction, tenantId, jobs[i]!, now);
          return enqueued;
        }),
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
        if (found.length === 0) return changed;
        const done = await writer.write((transaction) => {
          let [count, written] = [0, 0];
          for (const { seq, id } of found) {
            // Between the search and this transaction a job may have moved on; those that did are left alone.
            const row = reader.rowBySeq(seq);
            if (row === undefined || row.id !== id || !from.includes(row.status)) continue;
            written += apply(transaction, row, rule);
            count += 1;
            if (written > PAGE_BYTES) return { count, last: seq };
          }
          return { count, last: found.at(-1)!.seq };
        });
        changed += done.count;
        before = done.last;
      }
    },
  };
}

/** What of a job can be large in an answer. */
function sizeOf({ target, payload, response, steps }: JobDetail): number {
  const ofSteps = steps.reduce((sum, step) => sum + partSize(step.headers, step.payload, step.response), 0);
  return partSize(target?.headers ?? {}, payload, response) + ofSteps;
}

function partSize(headers: Headers, payload: RawJson | null, response: StoredResponse | null): number {
  const ofResponse = response === null ? 0 : response.body.length + headerSize(response.headers);
  return headerSize(headers) + (payload?.text.length ?? 0) + ofResponse;
}

function headerSize(headers: Headers): number {
  return Object.entries(headers).reduce((sum, [name, value]) => sum + name.length + value.length, 0);
}

function tooMuchToRepeat(): Problem {
  const most = `${MAX_REPEATED_BYTES / 1024 / 1024} MiB`;
  const detail = `hold so many that a dedupe_key finds that the answer would repeat over ${most} of them; send them in smaller batches`;
  return new Problem("invalid_request", `jobs ${detail}. Nothing was created.`, {
    errors: [{ pointer: "/jobs", detail }],
  });
}
