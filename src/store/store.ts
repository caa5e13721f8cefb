/**
 * The port of the store: what Errand remembers, as whole commands. Each command is one transaction; a promise resolves
 * when its result is durable, except where it says "at commit". No transaction and no row leaves the store. A command
 * that cannot keep its promise rejects with the Problem `unavailable` and has changed nothing that is acknowledged.
 */
import type { Account, ApiKey, Principal, SigningSecret } from "../accounts/account.ts";
import type { RawJson } from "../base/json.ts";
import type { Tenant } from "../base/tenant.ts";
import type { Attempt, Job, JobDetail, JobStatus, NewJob, Step } from "../jobs/job.ts";
import type { Changes, Settlement } from "../jobs/lifecycle.ts";
import type { Results } from "../jobs/pipeline.ts";
import type { Firing } from "../schedules/run.ts";
import type { Occurrence, Schedule } from "../schedules/schedule.ts";

export interface Store {
  readonly jobs: JobStore;
  readonly engine: EngineStore;
  readonly schedules: ScheduleStore;
  readonly queues: QueueStore;
  readonly accounts: AccountStore;
  readonly maintenance: MaintenanceStore;
  /** Called after each commit with what changed in it, in order. Must not throw. The answer unsubscribes. */
  subscribe(listener: (changes: readonly Change[]) => void): () => void;
  /**
   * Null when promises of durability can be kept; else a sentence that says why not. Meanwhile every command that
   * writes, a claim included, rejects with `unavailable`. It passes by itself when the disk is sound again.
   */
  trouble(): string | null;
  /**
   * What to tell those whose call failed: `unavailable` where the disk, or the file on it, could not be read, which is
   * trouble from then on; any other error as it is.
   */
  judged(error: unknown): unknown;
  /** Waits for what is under way, checkpoints, and lets go of the file and its lock. */
  close(): Promise<void>;
}

// ── Changes ─────────────────────────────────────────────────────────────────────────────────────────────────────────

export type Change = JobChange | ScheduleChange | LaneChange | QueueChange | KeyChange;

/** A job came to be or changed its state. */
export interface JobChange {
  readonly kind: "job";
  readonly tenant: Tenant;
  readonly jobId: string;
  readonly status: JobStatus;
  readonly previous: JobStatus | null;
  readonly queue: string;
  readonly scheduleId: string | null;
  readonly at: number;
}

export interface ScheduleChange {
  readonly kind: "schedule";
  readonly tenant: Tenant;
  readonly scheduleId: string;
  readonly event: "created" | "updated" | "deleted" | "fired" | "missed" | "skipped" | "triggered";
  readonly nextRunAt: number | null;
  readonly at: number;
}

/** A lane has something due at `dueAt`: the nudge of the dispatcher. */
export interface LaneChange {
  readonly kind: "lane";
  readonly lane: Lane;
  readonly dueAt: number;
}

/** The limits of a queue changed. */
export interface QueueChange {
  readonly kind: "queue";
  readonly limits: QueueLimits;
}

/** A key was revoked. */
export type KeyChange = Readonly<{ kind: "key"; keyId: string }>;

// ── Jobs ────────────────────────────────────────────────────────────────────────────────────────────────────────────

/** An answer to be repeated byte for byte. */
export interface StoredAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/**
 * `Idempotency-Key` of a command that creates: the command runs once, in one transaction with the answer to repeat.
 * Another fingerprint under the same key rejects with `idempotency_key_reused`.
 */
export interface Once<T> {
  readonly key: string;
  readonly fingerprint: string;
  /** Pure; called inside the transaction. */
  answer(value: T): StoredAnswer;
}

/** What a command under {@link Once} came to: its value, or the answer that was given the first time. */
export type OnceResult<T> = { readonly value: T } | { readonly replay: StoredAnswer };

export interface Enqueued {
  readonly job: JobDetail;
  /** True when `dedupe_key` found this job and none was made. */
  readonly deduplicated: boolean;
}

export interface JobFilter {
  readonly statuses?: readonly JobStatus[] | undefined;
  readonly queue?: string | undefined;
  readonly scheduleId?: string | undefined;
  readonly tag?: string | undefined;
  readonly urlContains?: string | undefined;
  readonly createdAfter?: number | undefined;
  readonly createdBefore?: number | undefined;
}

export interface Page<T> {
  readonly items: readonly T[];
  readonly nextCursor: string | null;
}

export interface PageRequest {
  readonly limit: number;
  readonly cursor: string | null;
}

/** A pure rule of lifecycle.ts: what a transition changes. Throws a Problem when the state does not allow it. */
export type Rule = (job: Job, step: Step | null) => Changes;

export interface JobStore {
  /** Makes all jobs or none, in order. */
  enqueue(
    tenant: Tenant,
    jobs: readonly NewJob[],
    now: number,
    once: Once<readonly Enqueued[]> | null,
  ): Promise<OnceResult<readonly Enqueued[]>>;
  get(tenant: Tenant, id: string): Promise<JobDetail | null>;
  /** Newest first. A cursor stays right while jobs come and go: nothing is skipped and nothing comes twice. */
  list(tenant: Tenant, filter: JobFilter, page: PageRequest): Promise<Page<Job>>;
  /** Oldest first, fewer than the limit where their responses are large; null for an unknown job. */
  attempts(tenant: Tenant, id: string, page: PageRequest): Promise<Page<Attempt> | null>;
  /** Applies a rule to one job; null for an unknown job. */
  change(tenant: Tenant, id: string, rule: Rule): Promise<JobDetail | null>;
  /** Applies a rule to every job of these states that the filter matches, in small transactions; the number changed. */
  changeAll(tenant: Tenant, filter: JobFilter, from: readonly JobStatus[], rule: Rule): Promise<number>;
}

// ── Engine ──────────────────────────────────────────────────────────────────────────────────────────────────────────

/** Where due jobs wait: one queue's jobs for one origin. `id` is the store's own. */
export interface Lane {
  readonly id: number;
  readonly queueId: number;
  readonly origin: string;
}

/** What one attempt needs: the job as claimed (active, attempt counted), and the bodies to send. */
export interface Claim {
  readonly job: Job;
  /** The store's own handle of the job. */
  readonly ref: number;
  readonly lane: Lane;
  /** When the attempt was due. */
  readonly dueAt: number;
  /** What a callback tells the end of; null for a job of a user. */
  readonly callbackOf: string | null;
  readonly payload: RawJson | null;
  readonly pipeline: PipelineState | null;
}

export interface PipelineState {
  readonly step: Step;
  readonly next: Step | null;
  /** The name of the step before; null for the first. */
  readonly previous: string | null;
  /** The responses of earlier steps that this one needs. */
  readonly results: Results;
}

export interface LaneClaims {
  readonly claims: readonly Claim[];
  /** When the lane's next job is due, of those not claimed; null for none. */
  readonly nextDueAt: number | null;
  /** Set when the queue's rate limit held jobs back: when the next may start. */
  readonly heldUntil: number | null;
}

/** What the dispatcher obeys in a queue. Null: no limit of its own. */
export interface QueueLimits {
  readonly id: number;
  readonly concurrency: number | null;
  readonly paused: boolean;
}

export interface EngineStore {
  /** Every lane with something pending, and when its first job is due. */
  lanes(): Promise<readonly { lane: Lane; dueAt: number }[]>;
  queueLimits(): Promise<readonly QueueLimits[]>;
  /**
   * Begins an attempt of up to `limit` due jobs of each lane, earliest first. Where bodies are large of fewer, and the last
   * lanes get no answer: they are to be asked for again. Resolves at commit.
   */
  claimDue(wanted: readonly { lane: Lane; limit: number }[], now: number): Promise<readonly LaneClaims[]>;
  /**
   * Ends the claimed attempt. False when it was settled before or another attempt has begun: then nothing changes.
   * Resolves at commit: losing it in a power cut means a redelivery.
   */
  settle(claim: Claim, settlement: Settlement): Promise<boolean>;
  /** Resolves when all that was committed is on the disk: jobs that Errand made by itself are sent only then. */
  synced(): Promise<void>;
  /** Settles, at a start, every attempt that the last process left active. Answers how many. */
  recover(rule: (job: Job, stepName: string | null) => Settlement): Promise<number>;
}

// ── Schedules ───────────────────────────────────────────────────────────────────────────────────────────────────────

/** What a create-or-replace found: `previous` is null where the schedule is new, and the same object where nothing changed. */
export interface Replaced {
  readonly schedule: Schedule;
  readonly previous: Schedule | null;
}

export interface ScheduleStore {
  create(schedule: Schedule, once: Once<Schedule> | null): Promise<OnceResult<Schedule>>;
  get(tenant: Tenant, id: string): Promise<Schedule | null>;
  list(tenant: Tenant, page: PageRequest): Promise<Page<Schedule>>;
  /** Reads, applies `rule` and writes what it answers; null for an unknown schedule. The same object back writes nothing. */
  update(tenant: Tenant, id: string, rule: (schedule: Schedule) => Schedule): Promise<Schedule | null>;
  /** Creates the schedule that `make` answers; where one has the name already, applies `rule` to it, as {@link update}. */
  createOrUpdate(
    tenant: Tenant,
    name: string,
    make: () => Schedule,
    rule: (schedule: Schedule) => Schedule,
  ): Promise<Replaced>;
  /** Its jobs stay. */
  remove(tenant: Tenant, id: string, now: number): Promise<boolean>;
  /** Makes the job that `run` says, besides all due times; null for an unknown schedule. */
  trigger(
    tenant: Tenant,
    id: string,
    run: (schedule: Schedule) => NewJob,
    now: number,
    once: Once<JobDetail> | null,
  ): Promise<OnceResult<JobDetail> | null>;
  /** The ledger, latest due time first. Null for an unknown schedule. */
  occurrences(tenant: Tenant, id: string, page: PageRequest): Promise<Page<Occurrence> | null>;
  /** Up to `limit` due schedules of all tenants, those due last first: who is on time never waits for a long downtime. */
  due(now: number, limit: number): Promise<readonly Schedule[]>;
  nextDueAt(): Promise<number | null>;
  /**
   * Jobs, ledger and re-arming of each schedule in one transaction. False where `dueAt` no longer stands. Whatever the
   * clock did, a due time that has made a job makes no other: its line in the ledger is the proof. Resolves at commit.
   */
  fire(firings: readonly { schedule: Schedule; firing: Firing }[], now: number): Promise<readonly boolean[]>;
  /** Schedules that are neither paused nor over, and have no next run. */
  unarmed(now: number, page: PageRequest): Promise<Page<Schedule>>;
  /** Schedules that a clock ahead of `now` may have changed or fired, so that they wait for a time far away. */
  ahead(now: number, page: PageRequest): Promise<Page<Schedule>>;
}

// ── Queues, usage ───────────────────────────────────────────────────────────────────────────────────────────────────

export interface QueueSettings {
  readonly concurrency: number | null;
  readonly rateLimit: { readonly limit: number; readonly period: string } | null;
  readonly paused: boolean;
}

export interface Queue extends QueueSettings {
  readonly name: string;
  readonly counts: Readonly<Record<JobStatus, number>>;
  /** When the job that has been due for longest became due; null when none is due. */
  readonly oldestDueAt: number | null;
}

export interface UsageDay {
  /** `2026-11-21`, UTC. */
  readonly day: string;
  readonly jobs: number;
  readonly deliveries: number;
}

export interface QueueStore {
  /** Newest first. */
  list(tenant: Tenant, page: PageRequest, now: number): Promise<Page<Queue>>;
  get(tenant: Tenant, name: string, now: number): Promise<Queue | null>;
  /** Makes the queue when it is new. A setting that is left out stays what it was. */
  configure(tenant: Tenant, name: string, settings: Partial<QueueSettings>, now: number): Promise<Queue>;
  /** The same for a queue that is there; null for an unknown one. */
  change(tenant: Tenant, name: string, settings: Partial<QueueSettings>, now: number): Promise<Queue | null>;
  /** Days of one month (`2026-11`) on which something happened, in order. */
  usage(tenant: Tenant, month: string): Promise<readonly UsageDay[]>;
}

// ── Accounts ────────────────────────────────────────────────────────────────────────────────────────────────────────

export interface NewKey extends ApiKey {
  readonly hash: string;
}

export interface AccountStore {
  /** The principal of the key with this SHA-256; null for none. Sees keys that another process made or revoked. */
  authenticate(keyHash: string): Promise<Principal | null>;
  /** The account, its keys, and for each mode a signing secret and the queue that jobs go to by default. */
  create(
    account: Account,
    keys: readonly NewKey[],
    secrets: readonly (SigningSecret & { mode: Tenant["mode"] })[],
  ): Promise<void>;
  list(): Promise<readonly Account[]>;
  get(id: string): Promise<Account | null>;
  createKey(key: NewKey, once: Once<ApiKey> | null): Promise<OnceResult<ApiKey>>;
  keys(tenant: Tenant, page: PageRequest): Promise<Page<ApiKey>>;
  revokeKey(tenant: Tenant, id: string): Promise<boolean>;
  /** Secrets that sign now, the current one first. */
  signingSecrets(tenant: Tenant, now: number): Promise<readonly SigningSecret[]>;
  /** Adds a secret; those there expire at `othersExpireAt` at the latest. The answer is as that of `signingSecrets`. */
  rotateSigningSecret(
    tenant: Tenant,
    secret: SigningSecret,
    othersExpireAt: number,
    once: Once<readonly SigningSecret[]> | null,
  ): Promise<OnceResult<readonly SigningSecret[]>>;
}

// ── Maintenance ─────────────────────────────────────────────────────────────────────────────────────────────────────

export interface MaintenanceStore {
  /** Rejects, by `rule`, jobs whose approval timed out; when the next one does, or null. */
  expireApprovals(now: number, rule: Rule): Promise<number | null>;
  /**
   * Removes a small number of finished jobs and ledger lines from before `before`, and lanes in which nothing waits, and
   * gives a little of the space back; whether there may be more. A job that its dedupe_key still has to find stays.
   */
  prune(before: number, now: number): Promise<boolean>;
  /** Figures for the metrics: counted, never scanned. */
  figures(): Promise<StoreFigures>;
  /** Dispatch and cron are held since a restore, until a person says `errand resume`. */
  isHeld(): Promise<boolean>;
  hold(held: boolean): Promise<void>;
}

export interface StoreFigures {
  readonly jobs: readonly { queue: string; status: JobStatus; count: number }[];
  readonly fileBytes: number;
  readonly walBytes: number;
}
