/** After a simulation: everything that the file holds, against what was promised. */
import type Database from "better-sqlite3";
import type { JobStatus } from "../../src/jobs/job.ts";
import { FINAL, MAX_DEATHS } from "../../src/jobs/lifecycle.ts";
import { nextFireTime } from "../../src/schedules/firing.ts";
import { expectedBody } from "./bodies.ts";
import type { Retention } from "./retention.ts";
import type { Witness } from "./witness.ts";
import type { World } from "./world.ts";

/** One line of the ledger for each due time, where nobody touched the schedule and the clock never went back. */
export async function verifyDueTimes({ witness, store, clock, retention }: World): Promise<void> {
  if (witness.wentBack) return;
  for (const { label, schedule, acknowledged, touched } of witness.schedules) {
    if (!acknowledged || touched) continue;
    const recorded: number[] = [];
    for (let cursor: string | null = null; ; ) {
      const page = await store.schedules.occurrences(schedule.tenant, schedule.id, { limit: 100, cursor });
      if (page === null) return witness.violate(`schedule ${label} was acknowledged and is gone`);
      recorded.unshift(...page.items.map(({ scheduledFor }) => scheduledFor).toReversed());
      cursor = page.nextCursor;
      if (cursor === null) break;
    }
    const due: number[] = [];
    for (
      let at = nextFireTime(schedule, schedule.createdAt);
      at !== null && at <= clock.now();
      at = nextFireTime(schedule, at)
    )
      due.push(at);
    // Older lines may be gone or not.
    const wrong = [
      ...due.filter((at) => at >= retention.reached && !recorded.includes(at)),
      ...recorded.filter((at) => !due.includes(at)),
    ];
    if (wrong.length > 0)
      witness.violate(
        `schedule ${label} has ${recorded.length} lines for ${due.length} due times, wrong at ${new Date(wrong[0]!).toISOString()}`,
      );
  }
}

/** Every acknowledged job is there for those who ask, in the state that its events told. */
export async function verifyPort({ witness, store, tenants }: World): Promise<void> {
  for (const [id, job] of witness.jobs) {
    const found = await store.jobs.get(job.tenant, id);
    if (job.removed !== "no") {
      if (found !== null) witness.violate(`${job.label} was removed and is there again`);
      continue;
    }
    if (found === null && job.acknowledged) witness.violate(`${job.label} was acknowledged and is gone`);
    if ((found?.status ?? null) !== job.status)
      witness.violate(`${job.label} is ${found?.status}, its events said ${job.status}`);
  }
  for (const tenant of tenants) {
    let count = 0;
    for (let cursor: string | null = null; ; ) {
      const page = await store.jobs.list(tenant, {}, { limit: 100, cursor });
      count += page.items.length;
      cursor = page.nextCursor;
      if (cursor === null) break;
    }
    const made = [...witness.jobs.values()].filter(
      (job) => job.status !== null && job.removed === "no" && job.tenant.mode === tenant.mode,
    );
    if (count !== made.length) witness.violate(`${count} jobs are listed, ${made.length} were made`);
  }
}

/** Lines of the ledger from before this may be gone. */
const REACHED = "(SELECT at FROM reached)";

/** Each statement finds what must not be; the sentence says what that is. */
const NEVER: readonly (readonly [sentence: string, sql: string])[] = [
  [
    "a job is active with nobody at work, or pending for ever",
    "SELECT id FROM jobs WHERE status IN ('active', 'pending') OR (status = 'awaiting_approval' AND due_at IS NOT NULL)",
  ],
  [
    "attempt numbers have a gap",
    "SELECT job FROM attempts GROUP BY job, step HAVING count(*) <> max(number) OR min(number) <> 1",
  ],
  [
    "a job counts other attempts than its ledger",
    `SELECT id FROM jobs WHERE attempts <> (SELECT count(*) FROM attempts WHERE job = seq AND attempts.step = jobs.step)`,
  ],
  [
    "a budget was overdrawn",
    `SELECT jobs.id FROM jobs LEFT JOIN steps ON steps.job = seq AND position = step
     WHERE spent > coalesce(steps.max_attempts, jobs.max_attempts)`,
  ],
  [
    "more attempts were spent than were made",
    `SELECT id FROM jobs WHERE spent > (SELECT count(*) FROM attempts
       WHERE job = seq AND attempts.step = jobs.step AND coalesce(error_code, '') <> 'interrupted')`,
  ],
  [
    "an attempt had a reference that found nothing, in a step that is sound",
    `SELECT job FROM attempts JOIN jobs ON seq = job WHERE error_code = 'unresolved_reference'
       AND NOT EXISTS (SELECT 1 FROM unresolved WHERE unresolved.id = jobs.id AND unresolved.step = attempts.step)`,
  ],
  ["a job died too often", `SELECT id FROM jobs WHERE deaths > ${MAX_DEATHS}`],
  [
    "a due time made two jobs",
    `SELECT schedule_id FROM jobs WHERE scheduled_for >= ${REACHED} GROUP BY schedule_id, scheduled_for HAVING count(*) > 1`,
  ],
  [
    "a line of the ledger has no job",
    "SELECT job_id FROM occurrences WHERE job_id IS NOT NULL AND job_id NOT IN (SELECT id FROM jobs UNION ALL SELECT id FROM removed)",
  ],
  [
    "a job of a schedule is in no ledger",
    `SELECT id FROM jobs WHERE scheduled_for >= ${REACHED} AND schedule_id IN (SELECT id FROM schedules)
       AND id NOT IN (SELECT job_id FROM occurrences WHERE job_id IS NOT NULL)`,
  ],
  [
    "a schedule that runs has no next run",
    "SELECT id FROM schedules WHERE paused = 0 AND next_run_at IS NULL",
  ],
  [
    "a queue counts other jobs than it has",
    `SELECT queue, status, sum(count) FROM (
       SELECT queue, status, count FROM queue_counts UNION ALL
       SELECT queue, status, -count(*) FROM jobs WHERE callback_of IS NULL GROUP BY queue, status
     ) GROUP BY queue, status HAVING sum(count) <> 0`,
  ],
  [
    "usage differs from the jobs created",
    `SELECT tenant, day, sum(jobs) FROM (
       SELECT tenant, day, jobs FROM usage UNION ALL
       SELECT tenant, date(created_at / 1000, 'unixepoch'), -count(*) FROM jobs WHERE callback_of IS NULL GROUP BY 1, 2
       UNION ALL SELECT tenant, date(created_at / 1000, 'unixepoch'), -count(*) FROM removed GROUP BY 1, 2
     ) GROUP BY tenant, day HAVING sum(jobs) <> 0`,
  ],
  [
    "usage differs from the deliveries begun",
    `SELECT tenant, sum(n) FROM (
       SELECT tenant, deliveries AS n FROM usage UNION ALL
       SELECT tenant, -(SELECT count(*) FROM attempts WHERE job = seq) FROM jobs WHERE callback_of IS NULL
       UNION ALL SELECT tenant, -deliveries FROM removed
     ) GROUP BY tenant HAVING sum(n) <> 0`,
  ],
  [
    "a step ran before the one before it succeeded",
    `SELECT jobs.id FROM jobs JOIN steps ON steps.job = seq AND position < step
     WHERE coalesce((SELECT code FROM attempts WHERE job = seq AND attempts.step = position ORDER BY number DESC LIMIT 1), 0)
       NOT BETWEEN 200 AND 299`,
  ],
  [
    "a step ran without its approval",
    `SELECT jobs.id FROM jobs JOIN steps ON steps.job = seq WHERE steps.requires_approval = 1 AND steps.approved_at IS NULL
       AND EXISTS (SELECT 1 FROM attempts WHERE job = seq AND attempts.step = position)`,
  ],
  [
    "a job ran without its approval",
    `SELECT id FROM jobs WHERE requires_approval = 1 AND approved_at IS NULL AND EXISTS (SELECT 1 FROM attempts WHERE job = seq)`,
  ],
  [
    "a completed job has no success",
    `SELECT id FROM jobs WHERE status = 'completed' AND (step_count > 0 AND step <> step_count - 1
       OR coalesce((SELECT code FROM attempts WHERE job = seq AND attempts.step = jobs.step ORDER BY number DESC LIMIT 1), 0)
         NOT BETWEEN 200 AND 299)`,
  ],
];

export function verifyDatabase(db: Database.Database, { witness, retention }: World): void {
  tellDatabase(db, witness, retention);
  // Whether a job was made that a power cut took and no client heard of, its own bill cannot tell.
  const isSure = [...witness.jobs.values()].every(({ removed }) => removed !== "perhaps");
  for (const [sentence, sql] of NEVER) {
    if (sentence.startsWith("usage") && !isSure) continue;
    const found = db.prepare<[], Record<string, unknown>>(sql).get();
    if (found !== undefined) {
      const text = Object.values(found).map(
        (value) => witness.jobs.get(String(value))?.label ?? String(value),
      );
      witness.violate(`${sentence}: ${text.join(" ")}`);
    }
  }
  const faults = [
    db.pragma("quick_check(1)", { simple: true }),
    ...(db.pragma("foreign_key_check") as unknown[]),
  ];
  if (faults.length > 1 || faults[0] !== "ok")
    witness.violate(`the file is damaged: ${JSON.stringify(faults)}`);
  verifyJobs(db, witness, retention);
}

/** What the statements have to know of the run. */
function tellDatabase(db: Database.Database, witness: Witness, retention: Retention): void {
  db.exec(
    `CREATE TEMP TABLE reached (at INTEGER);
     CREATE TEMP TABLE removed (id TEXT, tenant INTEGER, created_at INTEGER, deliveries INTEGER);
     CREATE TEMP TABLE unresolved (id TEXT, step INTEGER)`,
  );
  // As if it had been at the beginning, where nothing is ever removed.
  db.prepare("INSERT INTO reached VALUES (?)").run(Math.max(0, retention.reached));
  const remove = db.prepare("INSERT INTO removed SELECT ?, id, ?, ? FROM tenants WHERE mode = ?");
  const unresolved = db.prepare("INSERT INTO unresolved VALUES (?, ?)");
  for (const [id, job] of witness.jobs) {
    if (job.removed === "yes") remove.run(id, job.createdAt, witness.attemptsOf(id), job.tenant.mode);
    const { wanted } = job;
    wanted?.steps.forEach((_step, i) => {
      if (expectedBody(wanted, i, String) === "unresolved") unresolved.run(id, i);
    });
  }
}

interface Row {
  id: string;
  status: JobStatus;
  schedule_id: string | null;
  scheduled_for: number | null;
  callback_url: string | null;
  callbacks: number;
  counted: number;
  most: number;
}

function verifyJobs(db: Database.Database, witness: Witness, { keepsAll }: Retention): void {
  const rows = db
    .prepare<[], Row>(
      `SELECT id, status, schedule_id, scheduled_for, callback_url,
         (SELECT count(*) FROM jobs AS callbacks WHERE callbacks.callback_of = jobs.id) AS callbacks,
         (SELECT coalesce(max(n), 0) FROM (SELECT count(*) AS n FROM attempts
            WHERE job = seq AND coalesce(error_code, '') <> 'interrupted' GROUP BY step)) AS counted,
         max(max_attempts, coalesce((SELECT max(max_attempts) FROM steps WHERE job = seq), 0)) AS most
       FROM jobs WHERE callback_of IS NULL`,
    )
    .all();
  const found = new Set(rows.map(({ id }) => id));
  const countMade = (ids: readonly string[]) =>
    ids.filter((id) => found.has(id) || witness.jobs.get(id)?.removed === "yes").length;
  for (const row of rows) {
    const job = witness.jobs.get(row.id);
    if (job === undefined) {
      witness.violate("a job is there that no event told of");
      continue;
    }
    const ends = row.callback_url === null ? 0 : job.ends;
    // Callbacks are removed, too, and maybe before their job.
    if (row.callbacks > ends || (keepsAll && row.callbacks < ends))
      witness.violate(`${job.label} ended ${ends} times and told it ${row.callbacks} times`);
    if (row.counted > row.most * (job.retries + 1))
      witness.violate(
        `${job.label} had ${row.counted} attempts, at most ${row.most} in each of ${job.retries + 1} budgets`,
      );
    if (FINAL.has(row.status) !== (job.status !== null && FINAL.has(job.status)))
      witness.violate(`${job.label} is ${row.status}, its events said ${job.status}`);
    if (job.wanted !== null && row.schedule_id !== job.wanted.scheduleId)
      witness.violate(`${job.label} belongs to schedule ${row.schedule_id}`);
    if (job.wanted !== null && row.scheduled_for !== null)
      witness.violate(`${job.label} stands for a due time, but a person asked for it`);
  }
  for (const ids of witness.batches) {
    if (ids.some((id) => witness.jobs.get(id)?.removed === "perhaps")) continue;
    const there = countMade(ids);
    if (there !== 0 && there !== ids.length)
      witness.violate(`of a batch of ${ids.length} jobs ${there} were made`);
  }
  for (const [key, ids] of witness.idempotent) {
    const there = countMade(ids.flat());
    if (there > 1) witness.violate(`the Idempotency-Key ${key} made ${there} jobs`);
  }
  for (const ids of witness.triggers) {
    const there = countMade(ids);
    if (there > 1) witness.violate(`a trigger made ${there} jobs`);
  }
}
