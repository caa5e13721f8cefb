/** All writes, in order: the commands of one turn of the event loop share a transaction and a sync. */
import { utcDay } from "../../base/clock.ts";
import { Problem } from "../../base/errors.ts";
import type { JobStatus } from "../../jobs/job.ts";
import type { Change } from "../store.ts";
import type { Connection } from "./connection.ts";
import type { Durability } from "./durability.ts";
import { DISK_FAULTS } from "./fault.ts";

/** What a command may do besides its own statements. All of it becomes true with the commit or not at all. */
export interface Transaction {
  emit(change: Change): void;
  /** Moves the count of a queue's jobs in a state. */
  count(queueId: number, status: JobStatus, by: number): void;
  use(tenantId: number, at: number, what: { jobs?: number; deliveries?: number }): void;
}

type Command<T> = (transaction: Transaction) => T;

interface Entry {
  readonly command: Command<unknown>;
  readonly durable: boolean;
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: unknown) => void;
}

/** The file itself is wrong: writing on would make it worse, and no later try can mend it. */
const DAMAGE = /^SQLITE_(CORRUPT|NOTADB)/;
/** Another process holds the writer's lock for longer than a statement waits: nothing is wrong with the disk. */
const HELD_ELSEWHERE = /^SQLITE_(BUSY|PROTOCOL)/;

/** Why the disk cannot be relied on. */
export interface Trouble {
  readonly reason: string;
  /** False for a damaged file, which stays so until a person acts. */
  readonly canPass: boolean;
}

export class Writer {
  private entries: Entry[] = [];
  private scheduled = false;
  private paused: Promise<void> | null = null;
  private readonly listeners = new Set<(changes: readonly Change[]) => void>();
  private readonly db: Connection;
  private readonly durability: Durability;
  private readonly onRollback: () => void;
  private readonly run: Record<
    "begin" | "commit" | "rollback" | "count" | "use",
    { run(...values: unknown[]): unknown }
  >;
  private troubled: Trouble | null = null;
  private closed = false;
  /** Called after each commit. Must not throw. */
  onCommit: () => void = () => {};
  /** Called when trouble begins. */
  onTrouble: (trouble: Trouble) => void = () => {};

  constructor(db: Connection, durability: Durability, onRollback: () => void) {
    this.db = db;
    this.durability = durability;
    this.onRollback = onRollback;
    durability.onSynced = () => {
      if (this.entries.length > 0) this.schedule();
    };
    this.run = {
      begin: db.prepare("BEGIN IMMEDIATE"),
      commit: db.prepare("COMMIT"),
      rollback: db.prepare("ROLLBACK"),
      count: db.prepare(
        `INSERT INTO queue_counts (queue, status, count) VALUES (?, ?, ?)
         ON CONFLICT (queue, status) DO UPDATE SET count = count + excluded.count`,
      ),
      use: db.prepare(
        `INSERT INTO usage (tenant, day, jobs, deliveries) VALUES (?, ?, ?, ?)
         ON CONFLICT (tenant, day) DO UPDATE SET jobs = jobs + excluded.jobs, deliveries = deliveries + excluded.deliveries`,
      ),
    };
  }

  /**
   * Runs a command in a transaction. It resolves when the result is on the disk, or already at the commit where
   * `durable` is false. A command refuses by throwing a Problem before it has written anything. Any other error rolls
   * the whole batch back, and each command runs again in a transaction of its own: it must be able to run twice.
   */
  write<T>(command: Command<T>, durable = true): Promise<T> {
    if (this.closed) return Promise.reject(unavailable());
    return new Promise<T>((resolve, reject) => {
      this.entries.push({ command, durable, resolve: resolve as (value: unknown) => void, reject });
      // While a sync is under way, commands that have to be durable gather: only the next sync covers them anyway, and
      // the fewer transactions they share, the less they cost. A command that waits for no sync takes them along.
      if (!durable || !this.durability.isSyncing) this.schedule();
    });
  }

  /** Resolves when all that was committed is on the disk. */
  synced(): Promise<void> {
    return this.durability.sync().catch((error: unknown) => {
      throw this.judge(error);
    });
  }

  subscribe(listener: (changes: readonly Change[]) => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  /**
   * Why the disk cannot be relied on, or null. Until it can be again every command is refused: after a failed sync the
   * kernel has forgotten which pages it lost, so that a later sync which succeeds proves nothing about them.
   */
  get trouble(): Trouble | null {
    return this.troubled;
  }

  /** All that was committed is on the disk, and the disk takes writes again. */
  recovered(): void {
    this.troubled = null;
  }

  /** Holds new transactions while `work` runs: what needs the writer's lock then never makes the loop wait for it. */
  async exclusively<T>(work: () => Promise<T>): Promise<T> {
    while (this.paused !== null) await this.paused;
    let release = () => {};
    this.paused = new Promise((resolve) => (release = resolve));
    try {
      return await work();
    } finally {
      this.paused = null;
      release();
      if (this.entries.length > 0) this.schedule();
    }
  }

  /** Refuses commands from now on; resolves when nothing is waiting to be written. */
  async close(): Promise<void> {
    this.closed = true;
    while (this.entries.length > 0 || this.scheduled) await new Promise((resolve) => setImmediate(resolve));
  }

  private schedule(): void {
    if (this.scheduled || this.paused !== null) return;
    this.scheduled = true;
    setImmediate(() => this.flush());
  }

  private flush(): void {
    this.scheduled = false;
    if (this.paused !== null) return;
    const batch = this.entries;
    this.entries = [];
    if (this.refusesAll(batch) || this.commit(batch)) return;
    for (const entry of batch) if (!this.refusesAll([entry])) this.commit([entry]);
  }

  /** Trouble may have begun while they waited. */
  private refusesAll(batch: readonly Entry[]): boolean {
    if (this.troubled === null) return false;
    for (const entry of batch) entry.reject(unavailable());
    return true;
  }

  /** False, with nobody told, when the batch failed by the fault of one of several commands. */
  private commit(batch: readonly Entry[]): boolean {
    let done: ReturnType<Writer["transact"]>;
    try {
      done = this.transact(batch);
    } catch (error) {
      const judged = this.judge(error);
      if (judged === error && batch.length > 1) return false;
      for (const entry of batch) entry.reject(judged);
      return true;
    }
    this.finish(batch, done);
    return true;
  }

  private transact(batch: readonly Entry[]): { results: unknown[]; changes: Change[] } {
    const changes: Change[] = [];
    const counts = new Map<string, { queueId: number; status: JobStatus; by: number }>();
    const uses = new Map<string, { tenantId: number; day: string; jobs: number; deliveries: number }>();
    const transaction: Transaction = {
      emit: (change) => changes.push(change),
      count(queueId, status, by) {
        const key = `${queueId} ${status}`;
        const known = counts.get(key);
        if (known === undefined) counts.set(key, { queueId, status, by });
        else known.by += by;
      },
      use(tenantId, at, what) {
        const day = utcDay(at);
        const key = `${tenantId} ${day}`;
        const known = uses.get(key) ?? { tenantId, day, jobs: 0, deliveries: 0 };
        known.jobs += what.jobs ?? 0;
        known.deliveries += what.deliveries ?? 0;
        uses.set(key, known);
      },
    };
    this.run.begin.run();
    try {
      const results = batch.map((entry) => {
        try {
          return entry.command(transaction);
        } catch (error) {
          if (error instanceof Problem) return error;
          throw error;
        }
      });
      for (const { queueId, status, by } of counts.values())
        if (by !== 0) this.run.count.run(queueId, status, by);
      for (const { tenantId, day, jobs, deliveries } of uses.values())
        this.run.use.run(tenantId, day, jobs, deliveries);
      this.run.commit.run();
      return { results, changes };
    } catch (error) {
      if (this.db.inTransaction) this.run.rollback.run();
      this.onRollback();
      throw error;
    }
  }

  private finish(
    batch: readonly Entry[],
    { results, changes }: { results: unknown[]; changes: readonly Change[] },
  ): void {
    const waiting: Entry[] = [];
    const values: unknown[] = [];
    batch.forEach((entry, i) => {
      if (results[i] instanceof Problem) {
        entry.reject(results[i]);
      } else if (entry.durable) {
        waiting.push(entry);
        values.push(results[i]);
      } else {
        entry.resolve(results[i]);
      }
    });
    this.onCommit();
    if (changes.length > 0) for (const listener of this.listeners) listener(changes);
    if (waiting.length === 0) return;
    this.durability.sync().then(
      () => waiting.forEach((entry, i) => entry.resolve(values[i])),
      (error: unknown) => {
        const problem = this.judge(error);
        for (const entry of waiting) entry.reject(problem);
      },
    );
  }

  /** What a read or a checkpoint met: see {@link judge}. */
  judgeRead(error: unknown): unknown {
    return codeOf(error).startsWith("SQLITE_") ? this.judge(error) : error;
  }

  /** Turns a fault of the disk into `unavailable`, and trouble begins; a Problem of a rule, or a defect, stays what it is. */
  private judge(error: unknown): unknown {
    const code = codeOf(error);
    if (error instanceof Problem || !(error instanceof Error) || code === "") return error;
    if (HELD_ELSEWHERE.test(code)) return unavailable(error);
    const isDamage = DAMAGE.test(code);
    // What is not SQLite's comes from the sync of the log.
    if (code.startsWith("SQLITE_") && !isDamage && !DISK_FAULTS.test(code)) return error;
    if (this.troubled === null) {
      const what = isDamage
        ? "the database file is damaged; `errand doctor` tells more"
        : "the disk cannot be relied on";
      this.troubled = { reason: `${what}: ${error.message} (${code})`, canPass: !isDamage };
      this.onTrouble(this.troubled);
    }
    return unavailable(error);
  }
}

function codeOf(error: unknown): string {
  return error instanceof Error && "code" in error ? String(error.code) : "";
}

function unavailable(cause?: unknown): Problem {
  return new Problem(
    "unavailable",
    "The store cannot promise durability at the moment. Nothing was acknowledged; try again later.",
    { headers: { "Retry-After": "5" }, cause },
  );
}
