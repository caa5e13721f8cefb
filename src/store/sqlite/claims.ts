/** Beginning and ending attempts: what the engine does to the store, thousands of times a second. */
import { durationMs } from "../../base/duration.ts";
import type { RawJson } from "../../base/json.ts";
import type { Job, StoredResponse } from "../../jobs/job.ts";
import { begin, type Settlement } from "../../jobs/lifecycle.ts";
import { sourcesOf } from "../../jobs/pipeline.ts";
import type { Claim, EngineStore, Lane, LaneClaims, PipelineState } from "../store.ts";
import type { WriteCallback } from "./callback.ts";
import type { Connection } from "./connection.ts";
import type { QueueStarts } from "./queue-starts.ts";
import { type JobReader, PAGE_BYTES } from "./read.ts";
import { type JobRow, type Rows, responseOf } from "./rows.ts";
import type { WriteTransition } from "./transition.ts";
import type { Transaction, Writer } from "./writer.ts";

interface Parts {
  readonly db: Connection;
  readonly writer: Writer;
  readonly rows: Rows;
  readonly reader: JobReader;
  readonly transition: WriteTransition;
  readonly callback: WriteCallback;
  readonly starts: QueueStarts;
}

/** Orphans settled in one transaction at a start. */
const RECOVER_BATCH = 500;

export function claimCommands(parts: Parts): EngineStore {
  const { db, writer, rows, reader, transition, callback, starts } = parts;
  const sql = {
    lanes: db.prepare<[], { id: number; queue: number; origin: string; due: number | null }>(
      // One seek in jobs_due for each lane: what lies in it does not matter.
      `SELECT id, queue, origin, (SELECT due_at FROM jobs WHERE lane = lanes.id ORDER BY due_at LIMIT 1) AS due
       FROM lanes`,
    ),
    // Proportional to what is claimed: a range of jobs_due that stops at the limit.
    due: db.prepare<[number, number, number], JobRow>(
      "SELECT * FROM jobs WHERE lane = ? AND due_at <= ? ORDER BY due_at, seq LIMIT ?",
    ),
    nextDue: db.prepare<[number], { due_at: number }>(
      "SELECT due_at FROM jobs WHERE lane = ? ORDER BY due_at LIMIT 1",
    ),
    limits: db.prepare<[], { id: number; concurrency: number | null; paused: number }>(
      "SELECT id, concurrency, paused FROM queues WHERE concurrency IS NOT NULL OR paused = 1",
    ),
    rate: db.prepare<[number], { rate_limit: number | null; rate_period: string | null }>(
      "SELECT rate_limit, rate_period FROM queues WHERE id = ?",
    ),
    addAttempt: db.prepare(
      `INSERT INTO attempts (job, step, number, started_at, duration_ms, code, headers, body, truncated, error, error_code, decision)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    ),
    active: db.prepare<[number, number], JobRow>(
      "SELECT * FROM jobs WHERE tenant = ? AND status = 'active' ORDER BY seq LIMIT ?",
    ),
    tenants: db.prepare<[], { id: number }>("SELECT id FROM tenants"),
  };

  /** `room` is what is left of {@link PAGE_BYTES}; a job that is begun while there is any may take more. */
  function claimLane(
    transaction: Transaction,
    lane: Lane,
    limit: number,
    now: number,
    room: { bytes: number },
  ): LaneClaims {
    const rate = rateOf(lane.queueId);
    // Never more than the rate limit within any one period, counted from when attempts began.
    const free = rate === null ? limit : rate.limit - starts.within(lane.queueId, rate.periodMs, now);
    const claims: Claim[] = [];
    for (const row of free > 0 ? sql.due.all(lane.id, now, Math.min(limit, free)) : []) {
      if (room.bytes <= 0) break;
      const step = reader.currentStep(row);
      const job = rows.job(row, step);
      const changes = begin(job, now);
      if (!transition(transaction, row, changes)) continue;
      if (rate !== null) starts.add(lane.queueId, now);
      if (row.callback_of === null) transaction.use(row.tenant, now, { deliveries: 1 });
      const payload = reader.payload(row.seq);
      const pipeline = step === null ? null : pipelineState(row);
      room.bytes -= sizeOf(payload, pipeline);
      claims.push({
        job: { ...job, ...changes },
        ref: row.seq,
        lane,
        dueAt: row.due_at ?? now,
        callbackOf: row.callback_of,
        payload,
        pipeline,
      });
    }
    const nextDueAt = sql.nextDue.get(lane.id)?.due_at ?? null;
    const heldUntil = rate === null ? null : starts.freeAt(lane.queueId, rate.limit, rate.periodMs);
    return { claims, nextDueAt, heldUntil };
  }

  function rateOf(queueId: number): { limit: number; periodMs: number } | null {
    const row = sql.rate.get(queueId);
    if (row === undefined || row.rate_limit === null || row.rate_period === null) return null;
    return { limit: row.rate_limit, periodMs: durationMs(row.rate_period) };
  }

  function pipelineState(row: JobRow): PipelineState {
    const steps = reader.stepsOf(row);
    const current = steps[row.step];
    if (current === undefined) throw new Error(`job ${row.id} has no step ${row.step}`);
    const step = rows.step(current);
    const previous = steps[row.step - 1]?.name ?? null;
    const needed = sourcesOf(step, previous);
    const results = new Map<string, StoredResponse>();
    for (const { name, position } of steps.slice(0, row.step)) {
      // The last attempt of a step that is over is the one that succeeded.
      const response = needed.has(name) ? responseOf(reader.lastAttempt(row, position)) : null;
      if (response !== null) results.set(name, response);
    }
    const next = steps[row.step + 1];
    return { step, next: next === undefined ? null : rows.step(next), previous, results };
  }

  /** The transition and the attempt's line in the ledger; false when the fence did not let it through. */
  function writeSettlement(transaction: Transaction, row: JobRow, { changes, attempt }: Settlement): boolean {
    if (!transition(transaction, row, changes)) return false;
    const { response } = attempt;
    sql.addAttempt.run(
      row.seq,
      attempt.step,
      attempt.number,
      attempt.startedAt,
      attempt.durationMs,
      response?.code ?? null,
      response === null ? null : JSON.stringify(response.headers),
      response === null || response.body.length === 0 ? null : response.body,
      response?.truncated === true ? 1 : 0,
      attempt.error,
      attempt.errorCode,
      attempt.decision,
    );
    callback(transaction, row, changes);
    return true;
  }

  return {
    async lanes() {
      return sql.lanes
        .all()
        .flatMap(({ id, queue, origin, due }) =>
          due === null ? [] : [{ lane: { id, queueId: queue, origin }, dueAt: due }],
        );
    },

    async queueLimits() {
      return sql.limits
        .all()
        .map((row) => ({ id: row.id, concurrency: row.concurrency, paused: row.paused === 1 }));
    },

    claimDue(wanted, now) {
      return writer.write((transaction) => {
        const room = { bytes: PAGE_BYTES };
        const results: LaneClaims[] = [];
        for (const { lane, limit } of wanted) {
          if (room.bytes <= 0) break;
          results.push(claimLane(transaction, lane, limit, now, room));
        }
        return results;
      }, false);
    },

    synced: () => writer.synced(),

    settle(claim, settlement) {
      return writer.write((transaction) => {
        const row = reader.rowBySeq(claim.ref);
        // The fence: the attempt that ends has to be the one that is under way.
        if (row === undefined || !isUnderWay(row, claim.job)) return false;
        return writeSettlement(transaction, row, settlement);
      }, false);
    },

    async recover(rule) {
      let recovered = 0;
      for (const { id } of sql.tenants.all()) {
        for (;;) {
          const count = await writer.write((transaction) => {
            const orphans = sql.active.all(id, RECOVER_BATCH);
            for (const row of orphans) {
              const step = reader.currentStep(row);
              writeSettlement(transaction, row, rule(rows.job(row, step), step?.name ?? null));
            }
            return orphans.length;
          });
          recovered += count;
          if (count < RECOVER_BATCH) break;
        }
      }
      return recovered;
    },
  };
}

/** What of a claim was read of bodies. */
function sizeOf(payload: RawJson | null, pipeline: PipelineState | null): number {
  let bytes = payload?.text.length ?? 0;
  if (pipeline === null) return bytes;
  bytes += pipeline.step.payload?.text.length ?? 0;
  for (const { body } of pipeline.results.values()) bytes += body.length;
  return bytes;
}

function isUnderWay(row: JobRow, job: Job): boolean {
  // By its id, too: of a job that retention has removed a new one may have the row number.
  return (
    row.id === job.id && row.status === "active" && row.step === job.step && row.attempts === job.attempts
  );
}
