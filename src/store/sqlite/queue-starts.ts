/** When attempts began in queues with a rate limit: what the limit is counted from, exact and kept across restarts. */
import type { Connection } from "./connection.ts";

/** Expired entries before `head` are cut off only now and then. */
interface Log {
  /** Oldest first. */
  at: number[];
  head: number;
}

/** How often the start of the log is cut: rarely enough to cost nothing. */
const CUT_AFTER = 4_096;

/**
 * The table is what lasts; the memory beside it makes a claim cost the same however high the limit. Changes belong to
 * the transaction of the caller: a rollback has to be followed by {@link forget}.
 */
export class QueueStarts {
  private readonly logs = new Map<number, Log>();
  private readonly sql;

  constructor(db: Connection) {
    this.sql = {
      all: db.prepare<[number], { at: number }>("SELECT at FROM queue_starts WHERE queue = ? ORDER BY at"),
      add: db.prepare("INSERT INTO queue_starts (queue, at) VALUES (?, ?)"),
      setBack: db.prepare("UPDATE queue_starts SET at = ? WHERE queue = ? AND at > ?"),
      remove: db.prepare("DELETE FROM queue_starts WHERE queue = ? AND at <= ?"),
    };
  }

  forget(): void {
    this.logs.clear();
  }

  /** Forgets what began `periodMs` ago or earlier; the number of starts that are left. */
  within(queueId: number, periodMs: number, now: number): number {
    const log = this.log(queueId);
    const { at, head } = log;
    // A clock that was set back would else hold the queue until it is there again.
    if (at.length > head && at.at(-1)! > now) this.sql.setBack.run(now, queueId, now);
    for (let i = at.length - 1; i >= head && at[i]! > now; i--) at[i] = now;
    while (log.head < at.length && at[log.head]! <= now - periodMs) log.head += 1;
    if (log.head > head) this.sql.remove.run(queueId, now - periodMs);
    if (log.head > CUT_AFTER) {
      log.at = at.slice(log.head);
      log.head = 0;
    }
    return log.at.length - log.head;
  }

  add(queueId: number, now: number): void {
    this.sql.add.run(queueId, now);
    this.log(queueId).at.push(now);
  }

  /** When the next attempt may begin, or null when that is now: the period over of the start that is one too many. */
  freeAt(queueId: number, limit: number, periodMs: number): number | null {
    const { at, head } = this.log(queueId);
    const count = at.length - head;
    return count < limit ? null : at[head + count - limit]! + periodMs;
  }

  private log(queueId: number): Log {
    let log = this.logs.get(queueId);
    if (log === undefined) {
      log = { at: this.sql.all.all(queueId).map((row) => row.at), head: 0 };
      this.logs.set(queueId, log);
    }
    return log;
  }
}
