/** Housekeeping in SQLite: expired approvals, retention, figures. */
import { statSync } from "node:fs";
import type { JobStatus } from "../../jobs/job.ts";
import type { MaintenanceStore } from "../store.ts";
import type { WriteCallback } from "./callback.ts";
import type { Connection } from "./connection.ts";
import type { Directory } from "./directory.ts";
import { ANSWER_KEPT_MS } from "./once.ts";
import { countOfPage, type JobReader, PAGE_BYTES } from "./read.ts";
import type { JobRow, Rows } from "./rows.ts";
import type { WriteTransition } from "./transition.ts";
import type { Writer } from "./writer.ts";

interface Parts {
  readonly db: Connection;
  readonly writer: Writer;
  readonly directory: Directory;
  readonly rows: Rows;
  readonly reader: JobReader;
  readonly transition: WriteTransition;
  readonly callback: WriteCallback;
  readonly file: string;
  /** Copies the log into the file, which is not cut before that. */
  readonly checkpoint: () => Promise<void>;
}

type FinishedRow = Pick<
  JobRow,
  "seq" | "queue" | "status" | "created_at" | "finished_at" | "callback_of" | "dedupe_until"
>;

/** Rows that one housekeeping transaction touches, fewer where their bodies are large: a few milliseconds. */
const STEP_ROWS = 200;
/** Pages given back to the filesystem in one step. */
const STEP_PAGES = 256;

export function maintenanceCommands(parts: Parts): MaintenanceStore {
  const { db, writer, directory, rows, reader, transition, callback, file, checkpoint } = parts;
  const sql = {
    expired: db.prepare<[number, number], JobRow>(
      "SELECT * FROM jobs WHERE status = 'awaiting_approval' AND due_at <= ? ORDER BY due_at LIMIT ?",
    ),
    nextExpiry: db.prepare<[], { at: number | null }>(
      "SELECT min(due_at) AS at FROM jobs WHERE status = 'awaiting_approval' AND due_at IS NOT NULL",
    ),
    tenants: db.prepare<[], { id: number }>("SELECT id FROM tenants"),
    finished: db.prepare<[number, string, number, number], FinishedRow>(
      `SELECT seq, queue, status, created_at, finished_at, callback_of, dedupe_until FROM jobs
       WHERE tenant = ? AND status = ? AND seq > ? ORDER BY seq LIMIT ?`,
    ),
    hasJob: db.prepare<[string], { found: number }>("SELECT 1 AS found FROM jobs WHERE id = ?"),
    // How long a body is stands before it: none is read for this.
    jobSize: db.prepare<[number], { bytes: number }>(
      `SELECT (SELECT total(octet_length(body)) FROM payloads WHERE job = jobs.seq)
            + (SELECT total(octet_length(payload)) FROM steps WHERE job = jobs.seq)
            + (SELECT total(octet_length(body)) FROM attempts WHERE job = jobs.seq) AS bytes
       FROM jobs WHERE seq = ?`,
    ),
    removeJob: db.prepare("DELETE FROM jobs WHERE seq = ?"),
    answerSizes: db.prepare<[number, number], { bytes: number }>(
      "SELECT octet_length(sealed) AS bytes FROM answers WHERE created_at <= ? ORDER BY created_at LIMIT ?",
    ),
    removeAnswers: db.prepare(
      `DELETE FROM answers WHERE (tenant, key) IN
         (SELECT tenant, key FROM answers WHERE created_at <= ? ORDER BY created_at LIMIT ?)`,
    ),
    removeOccurrences: db.prepare(
      `DELETE FROM occurrences WHERE (schedule, scheduled_for) IN
         (SELECT schedule, scheduled_for FROM occurrences WHERE schedule = ? AND scheduled_for < ? LIMIT ?)`,
    ),
    schedules: db.prepare<[number, number], { seq: number }>(
      "SELECT seq FROM schedules WHERE seq > ? ORDER BY seq LIMIT ?",
    ),
    lanes: db.prepare<[number, number], { id: number; queue: number; origin: string; used: number }>(
      // One seek in jobs_due for each lane.
      `SELECT id, queue, origin, EXISTS (SELECT 1 FROM jobs WHERE lane = lanes.id) AS used
       FROM lanes WHERE id > ? ORDER BY id LIMIT ?`,
    ),
    removeLane: db.prepare("DELETE FROM lanes WHERE id = ?"),
    freePages: db.prepare<[], number>("PRAGMA freelist_count").pluck(),
    counts: db.prepare<[], { name: string; status: JobStatus; count: number }>(
      `SELECT name, status, sum(count) AS count FROM queue_counts JOIN queues ON queues.id = queue_counts.queue
       GROUP BY name, status`,
    ),
    fact: db.prepare<[string], { value: string }>("SELECT value FROM facts WHERE name = ?"),
    setFact: db.prepare("INSERT OR REPLACE INTO facts (name, value) VALUES (?, ?)"),
  };
  /** Where the last step of retention stopped, by tenant and state; a pass over, it begins at the oldest again. */
  const pruneAt = new Map<string, number>();
  /** The last schedule whose ledger this pass of retention is done with. */
  let pruneLedgersAt = 0;
  /** The last lane that this pass of retention has looked into. */
  let pruneLanesAt = 0;

  /** Nobody asks for it any more. A dedupe_key finds what was not cancelled; the fate of a callback is read with its job. */
  function isPast(row: FinishedRow, before: number, now: number): boolean {
    if (row.finished_at === null || row.finished_at >= before) return false;
    if (row.callback_of !== null) return sql.hasJob.get(row.callback_of) === undefined;
    return row.status === "cancelled" || (row.dedupe_until ?? 0) <= now;
  }

  /** Removes what is old among the next rows of one state. True when this state may have more. */
  function pruneState(tenantId: number, status: JobStatus, before: number, now: number): Promise<boolean> {
    const key = `${tenantId} ${status}`;
    return writer.write((transaction) => {
      const next = sql.finished.all(tenantId, status, pruneAt.get(key) ?? 0, STEP_ROWS);
      const past = next.filter((row) => isPast(row, before, now));
      const sizes = past.map(({ seq }) => ({ bytes: sql.jobSize.get(seq)?.bytes ?? 0 }));
      const removed = past.slice(0, countOfPage(sizes, STEP_ROWS));
      for (const { seq, queue, callback_of } of removed) {
        sql.removeJob.run(seq);
        if (callback_of === null) transaction.count(queue, status, -1);
      }
      const isCut = removed.length < past.length;
      const last = isCut ? removed.at(-1) : next.at(-1);
      // Jobs come in the order of their creation: from here on none is old enough to have ended before the limit. What a
      // clock ahead of its time made says nothing of those after it.
      const isYoung = last !== undefined && last.created_at >= before && last.created_at <= now;
      const over = last === undefined || (!isCut && next.length < STEP_ROWS) || isYoung;
      if (over) pruneAt.delete(key);
      else pruneAt.set(key, last.seq);
      return !over;
    }, false);
  }

  /** Removes some of the answers that were kept long enough. True when there are more. */
  function pruneAnswers(before: number): Promise<boolean> {
    return writer.write(() => {
      const old = sql.answerSizes.all(before, STEP_ROWS);
      const count = countOfPage(old, STEP_ROWS);
      sql.removeAnswers.run(before, count);
      return count === STEP_ROWS || count < old.length;
    }, false);
  }

  /** Removes old lines from the ledgers of the next few schedules. True when there may be more to do. */
  function pruneLedgers(before: number): Promise<boolean> {
    return writer.write(() => {
      const next = sql.schedules.all(pruneLedgersAt, STEP_ROWS);
      let free = STEP_ROWS;
      for (const { seq } of next) {
        free -= sql.removeOccurrences.run(seq, before, free).changes;
        if (free === 0) return true;
        pruneLedgersAt = seq;
      }
      if (next.length === STEP_ROWS) return true;
      pruneLedgersAt = 0;
      return false;
    }, false);
  }

  /**
   * Removes those of the next few lanes in which nothing waits, so that a service which calls ever new hosts does not
   * grow. An attempt under way does not need its lane any more: a retry finds or makes one. True when there may be more.
   */
  function pruneLanes(): Promise<boolean> {
    return writer.write(() => {
      const next = sql.lanes.all(pruneLanesAt, STEP_ROWS);
      for (const { id, queue, origin, used } of next) {
        if (used === 1) continue;
        sql.removeLane.run(id);
        directory.forgetLane(queue, origin);
      }
      pruneLanesAt = next.length === STEP_ROWS ? next.at(-1)!.id : 0;
      return pruneLanesAt > 0;
    }, false);
  }

  /** Gives a few of the pages that nothing is in back to the filesystem. True when there are more. */
  async function giveBack(): Promise<boolean> {
    const free = sql.freePages.get() ?? 0;
    if (free === 0) return false;
    await writer.exclusively(async () => void db.pragma(`incremental_vacuum(${STEP_PAGES})`));
    const left = sql.freePages.get() ?? 0;
    if (left === 0) await checkpoint();
    return left > 0 && left < free;
  }

  return {
    async expireApprovals(now, rule) {
      for (;;) {
        const isOver = await writer.write((transaction) => {
          const expired = sql.expired.all(now, STEP_ROWS);
          let written = 0;
          for (const row of expired) {
            if (written > PAGE_BYTES) return false;
            const step = reader.currentStep(row);
            const changes = rule(rows.job(row, step), step === null ? null : rows.step(step));
            transition(transaction, row, changes);
            written += callback(transaction, row, changes);
          }
          return expired.length < STEP_ROWS;
        }, false);
        if (isOver) return sql.nextExpiry.get()?.at ?? null;
      }
    },

    async prune(before, now) {
      let more = false;
      for (const { id } of sql.tenants.all()) {
        for (const status of ["completed", "failed", "cancelled"] as const) {
          more = (await pruneState(id, status, before, now)) || more;
        }
      }
      more = (await pruneAnswers(now - ANSWER_KEPT_MS)) || more;
      more = (await pruneLedgers(before)) || more;
      more = (await pruneLanes()) || more;
      return (await giveBack()) || more;
    },

    async figures() {
      const jobs = sql.counts.all().map(({ name, status, count }) => ({ queue: name, status, count }));
      return { jobs, fileBytes: sizeOf(file), walBytes: sizeOf(`${file}-wal`) };
    },

    async isHeld() {
      return sql.fact.get("held")?.value === "1";
    },

    hold(held) {
      return writer.write(() => void sql.setFact.run("held", held ? "1" : "0"));
    },
  };
}

function sizeOf(file: string): number {
  return statSync(file, { throwIfNoEntry: false })?.size ?? 0;
}
