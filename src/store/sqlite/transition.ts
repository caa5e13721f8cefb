/** How a transition is written: one guarded UPDATE, the lane, the counts and the news. */
import type { Statement } from "better-sqlite3";
import { originOf } from "../../jobs/job.ts";
import type { Changes } from "../../jobs/lifecycle.ts";
import type { Connection } from "./connection.ts";
import type { Directory } from "./directory.ts";
import type { JobReader } from "./read.ts";
import type { JobRow } from "./rows.ts";
import type { Transaction } from "./writer.ts";

/** Every column that a transition may change. */
const COLUMNS = {
  status: "status",
  updatedAt: "updated_at",
  step: "step",
  dueAt: "due_at",
  attempts: "attempts",
  spent: "spent",
  deaths: "deaths",
  startedAt: "started_at",
  finishedAt: "finished_at",
  responseCode: "response_code",
  durationMs: "duration_ms",
  lastError: "last_error",
  lastErrorCode: "last_error_code",
  approvedAt: "approved_at",
  approvedBy: "approved_by",
  rejectedAt: "rejected_at",
  rejectedBy: "rejected_by",
  approvalNote: "approval_note",
} as const satisfies Record<keyof Changes, keyof JobRow>;

export type WriteTransition = (transaction: Transaction, row: JobRow, changes: Changes) => boolean;

/**
 * Prepares each statement once; the answer writes one transition. False when the row is no longer in the state, step and
 * attempt that the transition started from: then nothing was changed.
 */
export function transitionWriter(db: Connection, directory: Directory, reader: JobReader): WriteTransition {
  // One for each set of fields that lifecycle.ts changes together, about a dozen: SQLite looks at no other column.
  const updates = new Map<string, Statement>();
  const approveStep = db.prepare("UPDATE steps SET approved_at = ? WHERE job = ? AND position = ?");

  return (transaction, row, changes) => {
    const lane = changes.status === "pending" ? laneAfter(row, changes) : null;
    const values = [...Object.values(changes), lane?.id ?? null];
    // The guard is the fence: an outcome of an older attempt, or a decision on an older state, finds no row.
    const guard = [row.seq, row.status, row.step, row.attempts];
    if (updateOf(changes).run(...values, ...guard).changes === 0) return false;
    if (changes.approvedAt !== undefined && row.step_count > 0)
      approveStep.run(changes.approvedAt, row.seq, row.step);
    if (lane !== null && changes.dueAt != null)
      transaction.emit({ kind: "lane", lane, dueAt: changes.dueAt });
    if (row.callback_of !== null) return true;

    transaction.count(row.queue, row.status, -1);
    transaction.count(row.queue, changes.status, 1);
    transaction.emit({
      kind: "job",
      tenant: directory.tenant(row.tenant),
      jobId: row.id,
      status: changes.status,
      previous: row.status,
      queue: directory.queue(row.queue).name,
      scheduleId: row.schedule_id,
      at: changes.updatedAt,
    });
    return true;
  };

  function updateOf(changes: Changes): Statement {
    const fields = Object.keys(changes) as (keyof Changes)[];
    const key = fields.join();
    let update = updates.get(key);
    if (update === undefined) {
      const sets = fields.map((field) => `${COLUMNS[field]} = ?, `).join("");
      update = db.prepare(
        `UPDATE jobs SET ${sets}lane = ? WHERE seq = ? AND status = ? AND step = ? AND attempts = ?`,
      );
      updates.set(key, update);
    }
    return update;
  }

  /** Where it waits now: a pipeline moves to the lane of its next step's origin. */
  function laneAfter(row: JobRow, changes: Changes) {
    const url = row.url ?? reader.stepAt(row, changes.step ?? row.step)?.url;
    if (url === undefined) throw new Error(`job ${row.id} has neither a target nor step ${row.step}`);
    return directory.ensureLane(row.queue, originOf(url));
  }
}
