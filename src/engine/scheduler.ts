/** Cron: due times become jobs, each exactly once. */
import type { Clock } from "../base/clock.ts";
import type { Logger } from "../base/log.ts";
import { type Firing, firingsOf, MAX_WEIGHT, setAside, weightOf } from "../schedules/run.ts";
import type { Schedule } from "../schedules/schedule.ts";
import type { ScheduleChange, Store } from "../store/store.ts";
import { Loop } from "./loop.ts";

/** Due schedules read at once. */
const READ_AT_ONCE = 100;

export interface SchedulerParts {
  readonly store: Store;
  readonly clock: Clock;
  readonly log: Logger;
}

export class Scheduler {
  private readonly parts: SchedulerParts;
  private readonly loop: Loop;
  /** What is left of downtimes too long for one transaction, by schedule. Losing it costs planning it again. */
  private readonly rest = new Map<string, readonly Firing[]>();
  private unsubscribe = () => {};
  private stopped = false;

  constructor(parts: SchedulerParts) {
    this.parts = parts;
    this.loop = new Loop(
      () => this.step(),
      parts.clock,
      (error) => parts.log.error({ err: error }, "firing schedules failed; trying again"),
    );
  }

  start(): void {
    this.unsubscribe = this.parts.store.subscribe((changes) => {
      if (changes.some((change) => change.kind === "schedule" && REARMING.has(change.event)))
        this.loop.nudge();
    });
    this.loop.start();
  }

  stop(): Promise<void> {
    this.stopped = true;
    this.unsubscribe();
    return this.loop.stop();
  }

  /**
   * Fires what is due, one small transaction after the other; between two of them the loop turns, so that deliveries go
   * on. Answers when the next schedule is due.
   */
  async step(): Promise<number | null> {
    const { schedules, engine } = this.parts.store;
    let hasFired = false;
    while (!this.stopped) {
      const now = this.parts.clock.now();
      const due = await schedules.due(now, READ_AT_ONCE);
      if (due.length === 0) break;
      await schedules.fire(this.batch(due, now), now);
      hasFired = true;
    }
    this.rest.clear();
    // One sync covers them all.
    if (hasFired) await engine.synced();
    return schedules.nextDueAt();
  }

  /** The next firing of each schedule, as many as one transaction may hold and at least one. */
  private batch(due: readonly Schedule[], now: number): { schedule: Schedule; firing: Firing }[] {
    const batch: { schedule: Schedule; firing: Firing }[] = [];
    let weight = 0;
    for (const schedule of due) {
      const [firing, ...rest] = this.firings(schedule, now);
      if (firing === undefined) continue;
      weight += weightOf(firing);
      if (weight > MAX_WEIGHT && batch.length > 0) {
        this.rest.set(schedule.id, [firing, ...rest]);
        break;
      }
      batch.push({ schedule, firing });
      this.rest.set(schedule.id, rest);
    }
    return batch;
  }

  private firings(schedule: Schedule, now: number): readonly Firing[] {
    const rest = this.rest.get(schedule.id);
    if (rest?.[0]?.dueAt === schedule.nextRunAt) return rest;
    try {
      return firingsOf(schedule, now);
    } catch (error) {
      // Its rule was sound when it was written; a newer time zone database, say, no longer knows the zone. The others
      // go on; this one says `invalid`, and the janitor tries it again.
      this.parts.log.error(
        { err: error, schedule: schedule.id },
        "a schedule cannot be fired; it is set aside",
      );
      return [setAside(schedule, now)];
    }
  }
}

/** Changes after which another time may be the next. Its own firings are none: a step looks anew when it ends. */
const REARMING: ReadonlySet<ScheduleChange["event"]> = new Set(["created", "updated", "deleted"]);
