/** Knows what clients were told and what the store said it did, and compares every new event with that. */
import { durationMs } from "../../src/base/duration.ts";
import { type Tenant, tenantKey } from "../../src/base/tenant.ts";
import type { JobStatus, NewJob } from "../../src/jobs/job.ts";
import { FINAL, LIFECYCLE, MAX_DEATHS } from "../../src/jobs/lifecycle.ts";
import type { Schedule } from "../../src/schedules/schedule.ts";
import type { Change, Claim, JobChange, QueueSettings, Store } from "../../src/store/store.ts";
import type { StoredJob, StoredJobs } from "./files.ts";
import { KnownQueue } from "./known-queue.ts";
import type { Trace } from "./trace.ts";

export interface KnownJob {
  readonly label: string;
  readonly tenant: Tenant;
  /** What a client asked for; null for a job of a schedule. */
  readonly wanted: NewJob | null;
  readonly createdAt: number;
  acknowledged: boolean;
  /** By the store's own events; null while it has not said that the job exists. */
  status: JobStatus | null;
  /** How often it came to an end, and how often a person's retry took it out of one. */
  ends: number;
  endedAt: number;
  retries: number;
  /** By retention. Perhaps: a power cut took its removal or its creation, which no client was told of; either is right. */
  removed: "no" | "yes" | "perhaps";
  /** A client was told that it is over by a person's word, and nobody asked for a retry since. */
  sealed: boolean;
  /** Steps that the target answered with success, and those that somebody approved. */
  readonly done: Set<number>;
  readonly approved: Set<number>;
}

export interface KnownSchedule {
  readonly label: string;
  readonly schedule: Schedule;
  acknowledged: boolean;
  /** Paused, changed or removed: its due times then are not those of its expression. */
  touched: boolean;
}

const NO_LIMITS: QueueSettings = { concurrency: null, rateLimit: null, paused: false };

export class Violation extends Error {}

/** `part` of the URL's path: a step's number or `callback`; undefined for a plain job. */
export function exchangeName(label: string, part: string | undefined, attempt: number): string {
  return `${label}${part === undefined ? "" : `/${part}`} attempt ${attempt}`;
}

export class Witness {
  readonly jobs = new Map<string, KnownJob>();
  readonly schedules: KnownSchedule[] = [];
  readonly queues = new Map<string, KnownQueue>();
  /** Creates that repeat one Idempotency-Key: the ids that each of them offered. */
  readonly idempotent = new Map<string, (readonly string[])[]>();
  /** Batches, by the ids in them: all or none. */
  readonly batches: string[][] = [];
  /** Triggers of schedules: the ids of the jobs that each of them offered. */
  readonly triggers: string[][] = [];
  /** The claim behind each request: by job, step and attempt. */
  private readonly claims = new Map<string, Claim>();
  /** The last attempt that began of each step. */
  private readonly begun = new Map<string, number>();
  /** Jobs of due times, and callbacks, that reached the target: by their ids, as the target calls them. */
  private readonly sentUnasked = new Map<string, string>();
  /** Calls under way that may take a job out of a final state. */
  retriesUnderWay = 0;
  wentBack = false;
  /** Set by {@link Retention}: it may have removed this job, and nobody has looked yet. */
  mayBeRemoved: (job: KnownJob) => boolean = () => false;
  failure: Violation | null = null;
  readonly trace: Trace;

  constructor(trace: Trace) {
    this.trace = trace;
  }

  /** The first violation is the one that tells; the run ends at the next turn. */
  violate(text: string): void {
    this.trace.add(`VIOLATION ${text}`);
    this.failure ??= new Violation(text);
  }

  label(id: string): string {
    return this.jobs.get(id)?.label ?? "a callback";
  }

  expectJob(tenant: Tenant, wanted: NewJob, now: number): void {
    this.know(wanted.id, tenant, wanted, now);
  }

  /** A create with an Idempotency-Key that may make one of these jobs; more of them may be added later. */
  offer(key: string, ids: readonly string[]): void {
    this.idempotent.set(key, [...(this.idempotent.get(key) ?? []), ids]);
  }

  private know(id: string, tenant: Tenant, wanted: NewJob | null, createdAt: number): KnownJob {
    const job: KnownJob = {
      label: `J${this.jobs.size + 1}`,
      tenant,
      wanted,
      createdAt,
      acknowledged: false,
      status: null,
      ends: 0,
      endedAt: createdAt,
      retries: 0,
      removed: "no",
      sealed: false,
      done: new Set(),
      approved: new Set(),
    };
    this.jobs.set(id, job);
    return job;
  }

  // ── The store's events ────────────────────────────────────────────────────────────────────────────────────────────

  hear(changes: readonly Change[]): void {
    for (const change of changes) if (change.kind === "job") this.jobChanged(change);
  }

  private jobChanged(change: JobChange): void {
    const { jobId, previous, status } = change;
    const job = this.jobs.get(jobId) ?? this.know(jobId, change.tenant, null, change.at);
    this.trace.add(`${job.label} ${previous ?? "new"} → ${status}`);
    if (job.removed === "yes") this.violate(`${job.label} was removed and changes`);
    if (job.status !== previous)
      this.violate(`${job.label} left the state ${previous}, but it was ${job.status}`);
    if (previous === null) this.checkDuplicate(job);
    else if (!Object.values(LIFECYCLE[previous]).some((targets) => targets.includes(status)))
      this.violate(`${job.label} went from ${previous} to ${status}, which no event does`);
    if (previous !== null && FINAL.has(previous)) {
      job.retries += 1;
      if (this.retriesUnderWay === 0) this.violate(`${job.label} left the final state ${previous} unasked`);
    }
    if (FINAL.has(status)) {
      job.ends += 1;
      job.endedAt = change.at;
    }
    job.status = status;
  }

  /** `dedupe_key`: no second job while one is unfinished, or was created less than the window ago and not cancelled. */
  private checkDuplicate(job: KnownJob): void {
    const { wanted } = job;
    if (wanted === null || wanted.dedupeKey === null) return;
    for (const other of this.jobs.values()) {
      if (other === job || other.status === null || other.status === "cancelled") continue;
      if (other.removed !== "no" || this.mayBeRemoved(other)) continue;
      if (other.wanted?.dedupeKey !== wanted.dedupeKey || tenantKey(other.tenant) !== tenantKey(job.tenant))
        continue;
      const isYoung = other.createdAt > job.createdAt - durationMs(wanted.dedupeWindow);
      if (isYoung || !FINAL.has(other.status))
        this.violate(`${job.label} was created although ${other.label} has its dedupe_key`);
    }
  }

  // ── Attempts ──────────────────────────────────────────────────────────────────────────────────────────────────────

  claimed(claim: Claim, now: number): void {
    const { job } = claim;
    const label =
      claim.callbackOf === null ? this.label(job.id) : `callback of ${this.label(claim.callbackOf)}`;
    const what = `attempt ${job.attempts} of ${label}${job.target === null ? ` step ${job.step}` : ""}`;
    this.trace.add(`begins ${what}`);
    const step = `${job.id}/${job.step}`;
    const last = this.begun.get(step) ?? 0;
    if (job.attempts !== last + 1) this.violate(`${what} follows attempt ${last}`);
    this.begun.set(step, job.attempts);
    if (job.spent >= job.task.maxAttempts)
      this.violate(`${what} begins although ${job.spent} of ${job.task.maxAttempts} are spent`);
    if (job.deaths >= MAX_DEATHS) this.violate(`${what} begins after ${job.deaths} deaths`);
    const isFirst = job.step === 0 && job.attempts === 1 && (this.jobs.get(job.id)?.retries ?? 0) === 0;
    if (isFirst && job.runAt > now) this.violate(`${what} begins before its time`);
    this.claims.set(
      `${claim.callbackOf ?? job.id}/${claim.callbackOf === null ? job.step : "cb"}/${job.attempts}`,
      claim,
    );
    if (claim.callbackOf === null) {
      this.checkOrder(claim, what);
      const queue = this.queue(job.tenant, job.queue);
      if (queue.start(now))
        this.violate(`${what} begins too soon for its queue ${queue.name}, ${queue.text}`);
    }
  }

  /** The exchange that ended a step which is over: that of its last attempt. */
  lastExchange(jobId: string, step: number): string {
    return exchangeName(this.label(jobId), String(step), this.begun.get(`${jobId}/${step}`) ?? 0);
  }

  /** Attempts of a job that ever began. */
  attemptsOf(jobId: string): number {
    let count = 0;
    for (const [step, number] of this.begun) if (step.startsWith(`${jobId}/`)) count += number;
    return count;
  }

  claimOf(jobId: string, step: number | "cb", attempt: number): Claim | undefined {
    return this.claims.get(`${jobId}/${step}/${attempt}`);
  }

  /** A step never runs before the one before it succeeded, nor before its approval. */
  private checkOrder({ job, pipeline }: Claim, what: string): void {
    const known = this.jobs.get(job.id);
    if (known === undefined) return this.violate(`${what}: nobody heard of this job`);
    if (job.step > 0 && !known.done.has(job.step - 1))
      this.violate(`${what} begins before step ${job.step - 1} succeeded`);
    const required = (job.step === 0 && job.requiresApproval) || pipeline?.step.requiresApproval === true;
    if (required && !known.approved.has(job.step)) this.violate(`${what} begins without its approval`);
  }

  /** What nobody asked for is made again after a power cut, under another id: so it may not be lost once it was sent. */
  sent({ job, callbackOf }: Claim, name: string): void {
    if (callbackOf !== null || job.scheduledFor !== null) this.sentUnasked.set(job.id, name);
  }

  // ── Queues ────────────────────────────────────────────────────────────────────────────────────────────────────────

  queue(tenant: Tenant, name: string): KnownQueue {
    const key = `${tenantKey(tenant)} ${name}`;
    const known = this.queues.get(key);
    if (known !== undefined) return known;
    const queue = new KnownQueue(tenant, name);
    this.queues.set(key, queue);
    return queue;
  }

  /** At rest: what the store says of its queues is what holds. */
  async learnQueues(store: Store, now: number): Promise<void> {
    for (const queue of this.queues.values())
      if (!queue.isCertain)
        queue.learn((await store.queues.get(queue.tenant, queue.name, now)) ?? NO_LIMITS, now);
  }

  forgetQueues(): void {
    for (const queue of this.queues.values()) queue.forget();
  }

  // ── Losses ────────────────────────────────────────────────────────────────────────────────────────────────────────

  /** The process died; nothing that it still had in mind will happen. */
  died(): void {
    this.retriesUnderWay = 0;
  }

  /** A backup holds what was committed when it began. */
  checkBackup(rows: readonly StoredJob[]): void {
    const copied = new Map(rows.map(({ id, status }) => [id, status]));
    for (const [id, job] of this.jobs) {
      if (job.removed !== "no" || (this.mayBeRemoved(job) && !copied.has(id))) continue;
      if ((copied.get(id) ?? null) !== job.status)
        this.violate(`${job.label} is ${job.status}, in the backup ${copied.get(id) ?? "missing"}`);
    }
  }

  /** After a power cut the file holds some commits less. What clients were told must be among those that are left. */
  reload({ rows, begun, ids }: StoredJobs, keepsAll: boolean): void {
    const left = new Map(rows.map((row) => [row.id, row]));
    for (const [id, job] of this.jobs) {
      const row = left.get(id);
      if (row === undefined && (job.removed !== "no" || this.mayBeRemoved(job))) {
        job.removed = job.acknowledged ? "yes" : "perhaps";
        continue;
      }
      job.removed = "no";
      if (row === undefined && job.acknowledged) this.violate(`${job.label} was acknowledged and is gone`);
      if (row !== undefined && job.sealed && !FINAL.has(row.status))
        this.violate(`${job.label} was said to be over and is ${row.status}`);
      job.status = row?.status ?? null;
      job.endedAt = row?.finished_at ?? job.endedAt;
      // Retention may have removed some.
      job.ends = keepsAll ? (row?.callbacks ?? 0) : job.ends;
    }
    for (const step of this.begun.keys())
      if (this.jobs.get(step.slice(0, step.indexOf("/")))?.removed !== "yes") this.begun.delete(step);
    for (const [step, number] of begun) this.begun.set(step, number);
    if (keepsAll)
      for (const [id, name] of this.sentUnasked)
        if (!ids.has(id)) this.violate(`${name} was sent, and a power cut took what would have its id again`);
    this.forgetQueues();
  }
}
