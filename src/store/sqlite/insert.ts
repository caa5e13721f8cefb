/** How a job comes to be: its row, its payload, its steps, its place in a lane. */
import { durationMs } from "../../base/duration.ts";
import { type JobStatus, type NewJob, originOf } from "../../jobs/job.ts";
import { firstState } from "../../jobs/lifecycle.ts";
import type { Connection } from "./connection.ts";
import type { Directory } from "./directory.ts";
import { listColumn, type Rows } from "./rows.ts";
import type { Transaction } from "./writer.ts";

export interface Inserted {
  readonly seq: number;
  readonly status: JobStatus;
}

export type InsertJob = (
  transaction: Transaction,
  tenantId: number,
  job: NewJob,
  now: number,
  callbackOf?: string,
) => Inserted;

const OF_EVERY_JOB = [
  "id",
  "tenant",
  "queue",
  "lane",
  "status",
  "url",
  "method",
  "max_attempts",
  "timeout",
  "step_count",
  "run_at",
  "due_at",
  "created_at",
  "updated_at",
  "requires_approval",
];
/** A plain job has none of these; to write their nulls takes an eighth of its insert. */
const OF_SOME = [
  "callback_of",
  "headers",
  "retry_delays",
  "no_retry_on",
  "tags",
  "dedupe_key",
  "idempotency_key",
  "approval_timeout",
  "callback_url",
  "schedule_id",
  "scheduled_for",
  "dedupe_until",
];

function insertInto(table: string, columns: readonly string[]): string {
  return `INSERT INTO ${table} (${columns.join(", ")}) VALUES (${columns.map(() => "?").join(", ")})`;
}

/** Prepares the statements once; the answer inserts one job inside a transaction. */
export function jobInserter(db: Connection, directory: Directory, rows: Rows): InsertJob {
  const insertPlain = db.prepare(insertInto("jobs", OF_EVERY_JOB));
  const insertJob = db.prepare(insertInto("jobs", [...OF_EVERY_JOB, ...OF_SOME]));
  const insertPayload = db.prepare("INSERT INTO payloads (job, body) VALUES (?, ?)");
  const insertStep = db.prepare(
    `INSERT INTO steps (job, position, name, url, method, headers, payload, max_attempts, timeout, retry_delays,
       no_retry_on, delay, requires_approval)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
  );

  return (transaction, tenantId, job, now, callbackOf) => {
    const first = job.target ?? job.steps[0];
    if (first === undefined) throw new Error(`job ${job.id} has neither a target nor a step`);
    const queueId = directory.ensureQueue(tenantId, job.queue, now);
    const { status, dueAt } = firstState(job, now);
    const lane = status === "pending" ? directory.ensureLane(queueId, originOf(first.url)) : null;
    const ofEveryJob = [
      job.id,
      tenantId,
      queueId,
      lane?.id ?? null,
      status,
      job.target?.url ?? null,
      first.method,
      job.rules.maxAttempts,
      job.rules.timeout,
      job.steps.length,
      job.runAt,
      dueAt,
      now,
      now,
      job.requiresApproval ? 1 : 0,
    ];
    const ofSome = [
      callbackOf ?? null,
      job.target === null ? null : rows.sealHeaders(job.target.headers),
      listColumn(job.rules.retryDelays),
      listColumn(job.rules.noRetryOn),
      listColumn(job.tags),
      job.dedupeKey,
      job.idempotencyKey,
      job.approvalTimeout,
      job.callbackUrl,
      job.scheduleId,
      job.scheduledFor,
      job.dedupeKey === null ? null : now + durationMs(job.dedupeWindow),
    ];
    const isPlain = ofSome.every((value) => value === null);
    const inserted = isPlain ? insertPlain.run(ofEveryJob) : insertJob.run([...ofEveryJob, ...ofSome]);
    const seq = Number(inserted.lastInsertRowid);
    if (job.payload !== null) insertPayload.run(seq, job.payload.text);
    job.steps.forEach((step, position) => {
      insertStep.run(
        seq,
        position,
        step.name,
        step.url,
        step.method,
        rows.sealHeaders(step.headers),
        step.payload?.text ?? null,
        step.maxAttempts,
        step.timeout,
        listColumn(step.retryDelays),
        listColumn(step.noRetryOn),
        step.delay,
        step.requiresApproval ? 1 : 0,
      );
    });
    if (lane !== null && dueAt !== null) transaction.emit({ kind: "lane", lane, dueAt });
    if (callbackOf === undefined) {
      transaction.count(queueId, status, 1);
      transaction.use(tenantId, now, { jobs: 1 });
      transaction.emit({
        kind: "job",
        tenant: directory.tenant(tenantId),
        jobId: job.id,
        status,
        previous: null,
        queue: job.queue,
        scheduleId: job.scheduleId,
        at: now,
      });
    }
    return { seq, status };
  };
}
