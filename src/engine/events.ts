/** What happened, as it happens: the feed behind `GET /v1/events`, and those who wait for the end of a job. */
import { type Tenant, tenantKey } from "../base/tenant.ts";
import type { JobStatus } from "../jobs/job.ts";
import { FINAL } from "../jobs/lifecycle.ts";
import type { Change, JobChange, ScheduleChange, Store } from "../store/store.ts";

export interface FeedEvent {
  /** Position in this process's feed. */
  readonly position: number;
  /** `job.completed`, `schedule.fired` … */
  readonly type: string;
  readonly change: JobChange | ScheduleChange;
}

/** Events kept for readers that come back. Older ones are gone; such a reader is told so. */
const KEPT = 10_000;

/** How a job's change is called: a state reached from another one, or `created`. */
const JOB_EVENT: Record<JobStatus, string> = {
  pending: "job.pending",
  active: "job.started",
  completed: "job.completed",
  failed: "job.failed",
  cancelled: "job.cancelled",
  awaiting_approval: "job.awaiting_approval",
};

export class Feed {
  private readonly kept: FeedEvent[] = [];
  /** Where the events that still count begin in `kept`, which is cut only now and then. */
  private start = 0;
  private next = 1;
  private readonly listeners = new Map<string, Set<(event: FeedEvent) => void>>();
  private readonly waiters = new Map<string, Set<() => void>>();
  private readonly unsubscribe: () => void;

  constructor(store: Store) {
    this.unsubscribe = store.subscribe((changes) => this.hear(changes));
  }

  close(): void {
    this.unsubscribe();
    for (const waiting of this.waiters.values()) for (const wake of waiting) wake();
    this.waiters.clear();
  }

  /** The position of the newest event. */
  get position(): number {
    return this.next - 1;
  }

  /** Events of the tenant after `position`, or null when some of those are no longer kept. */
  since(tenant: Tenant, position: number): readonly FeedEvent[] | null {
    const oldest = this.kept[this.start]?.position ?? this.next;
    if (position < oldest - 1 || position > this.position) return null;
    const key = tenantKey(tenant);
    return this.kept
      .slice(this.start)
      .filter((event) => event.position > position && tenantKey(event.change.tenant) === key);
  }

  listen(tenant: Tenant, listener: (event: FeedEvent) => void): () => void {
    return addTo(this.listeners, tenantKey(tenant), listener);
  }

  /** Calls `wake` once the job has ended, or the feed is closed; the answer stops waiting. Costs nothing meanwhile. */
  onEnd(jobId: string, wake: () => void): () => void {
    return addTo(this.waiters, jobId, wake);
  }

  private hear(changes: readonly Change[]): void {
    for (const change of changes) {
      if (change.kind === "lane" || change.kind === "queue") continue;
      const event: FeedEvent = { position: this.next++, type: typeOf(change), change };
      this.keep(event);
      for (const listener of this.listeners.get(tenantKey(change.tenant)) ?? []) listener(event);
      if (change.kind === "job" && FINAL.has(change.status)) this.wake(change.jobId);
    }
  }

  private keep(event: FeedEvent): void {
    this.kept.push(event);
    if (this.kept.length - this.start > KEPT) this.start += 1;
    if (this.start < KEPT) return;
    this.kept.splice(0, this.start);
    this.start = 0;
  }

  private wake(jobId: string): void {
    const waiting = this.waiters.get(jobId);
    if (waiting === undefined) return;
    this.waiters.delete(jobId);
    for (const wake of waiting) wake();
  }
}

function typeOf(change: JobChange | ScheduleChange): string {
  if (change.kind === "schedule") return `schedule.${change.event}`;
  return change.previous === null ? "job.created" : JOB_EVENT[change.status];
}

function addTo<T>(map: Map<string, Set<T>>, key: string, value: T): () => void {
  const set = map.get(key) ?? new Set();
  map.set(key, set.add(value));
  return () => {
    set.delete(value);
    if (set.size === 0 && map.get(key) === set) map.delete(key);
  };
}
