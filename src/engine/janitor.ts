/** Housekeeping: approvals that ran out, jobs past their retention, schedules that lost their next run. */
import type { Clock } from "../base/clock.ts";
import type { Logger } from "../base/log.ts";
import { reject } from "../jobs/lifecycle.ts";
import { nextFireTime } from "../schedules/firing.ts";
import type { Store } from "../store/store.ts";
import { Loop } from "./loop.ts";

export interface JanitorParts {
  readonly store: Store;
  readonly clock: Clock;
  readonly log: Logger;
  /** How long finished jobs are kept, in milliseconds. */
  readonly retentionMs: number;
}

/** How often retention looks for something to remove, and how long it rests between two steps while it finds some. */
const PRUNE_EVERY_MS = 60_000;
const PRUNE_PAUSE_MS = 25;
const REARM_EVERY_MS = 60_000;

export class Janitor {
  private readonly parts: JanitorParts;
  private readonly approvals: Loop;
  private readonly retention: Loop;
  private readonly rearming: Loop;
  private unsubscribe = () => {};

  constructor(parts: JanitorParts) {
    this.parts = parts;
    const { clock, log } = parts;
    const loop = (what: string, step: (now: number) => Promise<number | null>) =>
      new Loop(step, clock, (error) => log.error({ err: error }, `${what} failed; trying again`));
    this.approvals = loop("expiring approvals", (now) => this.expireApprovals(now));
    this.retention = loop("removing old jobs", (now) => this.prune(now));
    this.rearming = loop("rearming schedules", (now) => this.rearm(now));
  }

  start(): void {
    this.unsubscribe = this.parts.store.subscribe((changes) => {
      if (changes.some((change) => change.kind === "job" && change.status === "awaiting_approval"))
        this.approvals.nudge();
    });
    for (const loop of [this.approvals, this.retention, this.rearming]) loop.start();
  }

  async stop(): Promise<void> {
    this.unsubscribe();
    await Promise.all([this.approvals.stop(), this.retention.stop(), this.rearming.stop()]);
  }

  /** Rejects, in the name of the system, what nobody approved in time. */
  expireApprovals(now: number): Promise<number | null> {
    const note = "approval_timeout passed";
    return this.parts.store.maintenance.expireApprovals(now, (job) => reject(job, "system", note, now));
  }

  async prune(now: number): Promise<number> {
    const more = await this.parts.store.maintenance.prune(now - this.parts.retentionMs, now);
    return now + (more ? PRUNE_PAUSE_MS : PRUNE_EVERY_MS);
  }

  /** A schedule that should run and has no next run gets one. None should be found: each is told to the log. */
  async rearm(now: number): Promise<number> {
    const { store, log } = this.parts;
    for (const schedule of await store.schedules.unarmed()) {
      const nextRunAt = nextFireTime(schedule, now);
      if (nextRunAt === null) continue;
      log.error({ schedule: schedule.id }, "a schedule had lost its next run; it has one again");
      await store.schedules.update(schedule.tenant, schedule.id, (current) =>
        current.nextRunAt === null && !current.paused ? { ...current, nextRunAt } : current,
      );
    }
    return now + REARM_EVERY_MS;
  }
}
