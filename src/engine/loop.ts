/** Runs a step whenever it is due: the only place in the engine that sleeps. */
import type { Clock } from "../base/clock.ts";

/** Does all that is due at `now`; answers when it wants to run again (wall clock, ms), or null to wait for a nudge. */
export type Step = (now: number) => Promise<number | null>;

/**
 * A sleep ends after this long even if nothing is due, to look at the wall clock again: timers do not see it jump, and
 * do not run while the machine is suspended. A look reads one number and touches no store.
 */
const LOOK_MS = 1_000;
/** The pause after a step that failed. */
const FAILURE_PAUSE_MS = 1_000;

export class Loop {
  private wakeAt: number | null = null;
  private nudged = true;
  private running = false;
  private stopped = true;
  private cancelTimer: () => void = () => {};
  private idle: () => void = () => {};
  private readonly step: Step;
  private readonly clock: Clock;
  private readonly onError: (error: unknown) => void;

  constructor(step: Step, clock: Clock, onError: (error: unknown) => void) {
    this.step = step;
    this.clock = clock;
    this.onError = onError;
  }

  start(): void {
    this.stopped = false;
    this.nudge();
  }

  /** Something may be due: step again as soon as the step under way, if any, is over. */
  nudge(): void {
    this.nudged = true;
    if (!this.running && !this.stopped) void this.run();
  }

  /** Takes no new step; resolves when the one under way is over. */
  stop(): Promise<void> {
    this.stopped = true;
    this.cancelTimer();
    if (!this.running) return Promise.resolve();
    return new Promise((resolve) => (this.idle = resolve));
  }

  private async run(): Promise<void> {
    this.running = true;
    this.cancelTimer();
    while (!this.stopped && this.isDue()) {
      this.nudged = false;
      try {
        this.wakeAt = await this.step(this.clock.now());
      } catch (error) {
        this.onError(error);
        this.wakeAt = this.clock.now() + FAILURE_PAUSE_MS;
        this.nudged = false;
      }
    }
    this.running = false;
    if (this.stopped) this.idle();
    else this.sleep();
  }

  private isDue(): boolean {
    return this.nudged || (this.wakeAt !== null && this.wakeAt <= this.clock.now());
  }

  private sleep(): void {
    const since = this.clock.now();
    const wait = this.wakeAt === null ? LOOK_MS : Math.min(this.wakeAt - since, LOOK_MS);
    this.cancelTimer = this.clock.timer(wait, () => {
      if (this.running || this.stopped) return;
      // The clock was set back: what the step made of the time then does not hold now.
      if (this.clock.now() < since) this.nudged = true;
      if (this.isDue()) void this.run();
      else this.sleep();
    });
  }
}
