/** Cron: due times become jobs, each exactly once. */
import type { Clock } from "../base/clock.ts";
import type { Logger } from "../base/log.ts";
import { planFiring } from "../schedules/missed.ts";
import { jobOfSchedule } from "../schedules/run.ts";
import type { Schedule } from "../schedules/schedule.ts";
import type { Firing, Store } from "../store/store.ts";
import { Loop } from "./loop.ts";

/** Schedules fired in one transaction; between two of them the loop turns, so that deliveries go on. */
const BATCH = 100;

export interface SchedulerParts {
  readonly store: Store;
  readonly clock: Clock;
  readonly log: Logger;
}

export class Scheduler {
  private readonly store: Store;
  private readonly loop: Loop;
  private unsubscribe = () => {};

  constructor({ store, clock, log }: SchedulerParts) {
    this.store = store;
    this.loop = new Loop(
      (now) => this.step(now),
      clock,
      (error) => log.error({ err: error }, "firing schedules failed; trying again"),
    );
  }

  start(): void {
    this.unsubscribe = this.store.subscribe((changes) => {
      if (changes.some((change) => change.kind === "schedule" && change.event !== "fired")) this.loop.nudge();
    });
    this.loop.start();
  }

  stop(): Promise<void> {
    this.unsubscribe();
    return this.loop.stop();
  }

  /** Fires what is due; answers when the next schedule is. */
  async step(now: number): Promise<number | null> {
    for (;;) {
      const due = await this.store.schedules.due(now, BATCH);
      if (due.length > 0) {
        await this.store.schedules.fire(
          due.map((schedule) => ({ schedule, firing: firingOf(schedule, now) })),
          now,
        );
      }
      if (due.length < BATCH) return this.store.schedules.nextDueAt();
    }
  }
}

/** What becomes of each due time of a schedule up to now, by its rules. */
export function firingOf(schedule: Schedule, now: number): Firing {
  const dueAt = schedule.nextRunAt;
  if (dueAt === null) throw new Error(`schedule ${schedule.id} has no due time`);
  const plan = planFiring(schedule, schedule.onMissed, dueAt, now);
  return {
    dueAt,
    occurrences: [
      ...plan.missed.map((scheduledFor) => ({
        scheduledFor,
        outcome: "missed" as const,
        latenessMs: null,
        job: null,
      })),
      ...plan.fire.map(({ scheduledFor, outcome }) => ({
        scheduledFor,
        outcome,
        latenessMs: now - scheduledFor,
        job: jobOfSchedule(schedule, scheduledFor, now),
      })),
    ],
    nextRunAt: plan.next,
  };
}
