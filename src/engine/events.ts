/** What happened, as it happens: the feed behind `GET /v1/events`, and those who wait for the end of a job or a key. */
import { randomBytes } from "node:crypto";
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
  /** Marks the positions of this process: those of another one, before a restart, mean nothing here. */
  readonly boot = randomBytes(6).toString("hex");
  private isClosed = false;
  private readonly kept: FeedEvent[] = [];
  /** Where the events that still count begin in `kept`, which is cut only now and then. */
  private start = 0;
  private next = 1;
  /** The position of the newest event of each tenant that is no longer kept. */
  private readonly gone = new Map<string, number>();
  private readonly listeners = new Map<string, Set<() => void>>();
  private readonly waiters = new Map<string, Set<() => void>>();
  private readonly unsubscribe: () => void;

  constructor(store: Pick<Store, "subscribe">) {
    this.unsubscribe = store.subscribe((changes) => this.hear(changes));
  }

  /** Everyone who listens or waits is woken a last time. */
  close(): void {
    this.isClosed = true;
    this.unsubscribe();
    for (const waiting of this.waiters.values()) for (const wake of waiting) wake();
    this.waiters.clear();
    for (const listening of this.listeners.values()) for (const wake of listening) wake();
  }

  get closed(): boolean {
    return this.isClosed;
  }

  /** The position of the newest event. */
  get position(): number {
    return this.next - 1;
  }

  /** Whether every event of the tenant after `position` is still there to be read, however much others made meanwhile. */
  keeps(tenant: Tenant, position: number): boolean {
    return position >= (this.gone.get(tenantKey(tenant)) ?? 0) && position <= this.position;
  }

  /**
   * Up to `limit` events of the tenant after `position`, and the position to go on from; null when some of those are no
   * longer kept. A reader that is slow costs nothing: it reads later, or too late.
   */
  read(
    tenant: Tenant,
    position: number,
    limit: number,
  ): { events: readonly FeedEvent[]; position: number } | null {
    if (!this.keeps(tenant, position)) return null;
    const events: FeedEvent[] = [];
    const next = Math.max(position + 1, this.oldest);
    for (let i = this.start + next - this.oldest; i < this.kept.length; i += 1) {
      const event = this.kept[i]!;
      const { accountId, mode } = event.change.tenant;
      if (accountId !== tenant.accountId || mode !== tenant.mode) continue;
      events.push(event);
      if (events.length === limit) return { events, position: event.position };
    }
    return { events, position: this.position };
  }

  /** Calls `wake` after each commit with events of the tenant, and when the feed is closed; the answer stops that. */
  listen(tenant: Tenant, wake: () => void): () => void {
    return addTo(this.listeners, tenantKey(tenant), wake);
  }

  /** How many listen to the tenant's events. */
  listening(tenant: Tenant): number {
    return this.listeners.get(tenantKey(tenant))?.size ?? 0;
  }

  /**
   * Calls `wake` once the job has ended or the key was revoked, whichever has this id, or the feed is closed; the answer
   * stops waiting. Costs nothing meanwhile.
   */
  onEnd(id: string, wake: () => void): () => void {
    if (this.isClosed) wake();
    return addTo(this.waiters, id, wake);
  }

  private get oldest(): number {
    return this.kept[this.start]?.position ?? this.next;
  }

  private hear(changes: readonly Change[]): void {
    const tenants = new Set<string>();
    for (const change of changes) {
      if (change.kind === "key") this.wake(change.keyId);
      if (change.kind !== "job" && change.kind !== "schedule") continue;
      this.keep({ position: this.next++, type: typeOf(change), change });
      tenants.add(tenantKey(change.tenant));
      if (change.kind === "job" && FINAL.has(change.status)) this.wake(change.jobId);
    }
    for (const key of tenants) for (const wake of this.listeners.get(key) ?? []) wake();
  }

  private keep(event: FeedEvent): void {
    this.kept.push(event);
    if (this.kept.length - this.start > KEPT) {
      const { change, position } = this.kept[this.start]!;
      this.gone.set(tenantKey(change.tenant), position);
      this.start += 1;
    }
    if (this.start < KEPT) return;
    this.kept.splice(0, this.start);
    this.start = 0;
  }

  private wake(id: string): void {
    const waiting = this.waiters.get(id);
    if (waiting === undefined) return;
    this.waiters.delete(id);
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
