/** Housekeeping: approvals that ran out, jobs past their retention, schedules that lost their next run. */
import { setImmediate as turn } from "node:timers/promises";
import type { Clock } from "../base/clock.ts";
import type { Logger } from "../base/log.ts";
import { reject } from "../jobs/lifecycle.ts";
import { rearm } from "../schedules/revise.ts";
import type { Schedule } from "../schedules/schedule.ts";
import type { Page, PageRequest, Store } from "../store/store.ts";
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
const REARMED_AT_ONCE = 100;

export class Janitor {
  private readonly parts: JanitorParts;
  private readonly approvals: Loop;
  private readonly retention: Loop;
  private readonly rearming: Loop;
  private unsubscribe = () => {};
  /** The wall clock of the last look. The first one looks as if the clock had been set back while Errand was down. */
  private rearmedAt = Infinity;

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
    const { store, clock, retentionMs } = this.parts;
    // An old backup is restored for what is in it: nothing goes before a person has looked and let the service go.
    if (await store.maintenance.isHeld()) return now + PRUNE_EVERY_MS;
    const more = await store.maintenance.prune(now - retentionMs, now);
    return clock.now() + (more ? PRUNE_PAUSE_MS : PRUNE_EVERY_MS);
  }

  /**
   * Every schedule that is to run has a next run: one that lost it gets it back, and one that a clock ahead of its time
   * had fired far into the future comes back when the clock does. None should be found: each is told to the log.
   */
  async rearm(now: number): Promise<number> {
    const { schedules } = this.parts.store;
    await this.rearmAll((page) => schedules.unarmed(now, page), now);
    if (now < this.rearmedAt) await this.rearmAll((page) => schedules.ahead(now, page), now);
    this.rearmedAt = now;
    return now + REARM_EVERY_MS;
  }

  /** A few at a time, and the loop turns in between: there may be very many, with large payloads. */
  private async rearmAll(find: (page: PageRequest) => Promise<Page<Schedule>>, now: number): Promise<void> {
    let cursor: string | null = null;
    do {
      const { items, nextCursor }: Page<Schedule> = await find({ limit: REARMED_AT_ONCE, cursor });
      await Promise.all(items.map((schedule) => this.rearmOne(schedule, now)));
      await turn();
      cursor = nextCursor;
    } while (cursor !== null);
  }

  private async rearmOne(schedule: Schedule, now: number): Promise<void> {
    const { store, log } = this.parts;
    const { id, tenant } = schedule;
    try {
      if (rearm(schedule, now) === schedule) return;
    } catch (error) {
      log.error({ err: error, schedule: id }, "a schedule has no next run, and none can be reckoned");
      return;
    }
    const rearmed = await store.schedules.update(tenant, id, (current) => rearm(current, now));
    const times = { was: schedule.nextRunAt, is: rearmed?.nextRunAt ?? null };
    log.warn(
      { schedule: id, ...times },
      "the next run of a schedule was missing or too late; it has one again",
    );
  }
}
