/** Watches retention: what it removes had ended and was old enough, and what is old enough does not stay. */
import type Database from "better-sqlite3";
import type { Clock } from "../../src/base/clock.ts";
import { durationMs } from "../../src/base/duration.ts";
import { FINAL } from "../../src/jobs/lifecycle.ts";
import type { Store } from "../../src/store/store.ts";
import { openRaw } from "./files.ts";
import type { KnownJob, Witness } from "./witness.ts";

/** As good as for ever: then everything can be checked at the end. */
const KEEP_ALL_MS = 100 * 365 * 86_400_000;
/** How long runs keep what has ended, each as likely: half of them keep all. */
export const KEPT_MS = [KEEP_ALL_MS, KEEP_ALL_MS, KEEP_ALL_MS, 10_000, 120_000, 1_800_000] as const;

export class Retention {
  readonly keptMs: number;
  /** What ended before this may be gone, by all passes so far. */
  reached = -Infinity;
  /** The latest time of a pass. */
  private lookedAt = -Infinity;
  /** A pass has begun at whose work nobody has looked yet. */
  private underWay = false;
  private readonly witness: Witness;
  private readonly clock: Pick<Clock, "now">;
  private db: Database.Database | null = null;

  constructor(keptMs: number, witness: Witness, clock: Pick<Clock, "now">) {
    this.keptMs = keptMs;
    this.witness = witness;
    this.clock = clock;
    witness.mayBeRemoved = (job) => this.underWay && this.allows(job);
  }

  get keepsAll(): boolean {
    return this.keptMs === KEEP_ALL_MS;
  }

  /** A life begins on this file: the last one may have been removing something when it ended. */
  begin(file: string): void {
    if (this.keepsAll) return;
    this.db = openRaw(file);
    if (this.underWay) this.look(-Infinity);
  }

  end(): void {
    this.db?.close();
    this.db = null;
  }

  watched(store: Store, isOver: () => boolean): Store {
    if (this.keepsAll) return store;
    const prune: Store["maintenance"]["prune"] = async (before, now) => {
      const limit = this.clock.now() - this.keptMs;
      this.reached = Math.max(this.reached, limit);
      this.lookedAt = Math.max(this.lookedAt, this.clock.now());
      this.underWay = true;
      let isDone = false;
      try {
        const more = await store.maintenance.prune(before, now);
        isDone = !more;
        return more;
      } finally {
        if (!isOver()) this.look(isDone && !this.witness.wentBack ? limit : -Infinity);
      }
    };
    return { ...store, maintenance: { ...store.maintenance, prune } };
  }

  /** Old enough by any pass so far, and its dedupe_key need not find it any more. */
  private allows({ status, endedAt, createdAt, wanted }: KnownJob): boolean {
    const isFound = wanted !== null && wanted.dedupeKey !== null && status !== "cancelled";
    const foundUntil = isFound ? createdAt + durationMs(wanted.dedupeWindow) : -Infinity;
    return status !== null && FINAL.has(status) && endedAt < this.reached && foundUntil <= this.lookedAt;
  }

  /** Compares what is there with what has to be; of what ended before `limit` nothing may be left. */
  private look(limit: number): void {
    const rows =
      this.db
        ?.prepare<[], { id: string; finished_at: number | null; found_until: number }>(
          `SELECT id, finished_at, iif(status = 'cancelled', 0, coalesce(dedupe_until, 0)) AS found_until
           FROM jobs WHERE callback_of IS NULL`,
        )
        .all() ?? [];
    const there = new Set(rows.map(({ id }) => id));
    for (const [id, job] of this.witness.jobs) {
      if (job.status === null || job.removed !== "no" || there.has(id)) continue;
      if (!this.allows(job)) this.witness.violate(`retention removed ${job.label}, which is ${job.status}`);
      job.removed = "yes";
      this.witness.trace.add(`${job.label} is removed`);
    }
    for (const { id, finished_at, found_until } of rows)
      if (finished_at !== null && finished_at < limit && found_until <= this.lookedAt)
        this.witness.violate(`retention left ${this.witness.label(id)}, which is old enough`);
    this.underWay = false;
  }
}
