/** A clock that stands still until a test moves it; `advance("5m")` wakes sleepers in order. */
import type { Clock } from "../../src/base/clock.ts";
import { durationMs } from "../../src/base/duration.ts";

interface Sleeper {
  readonly at: number;
  readonly order: number;
  readonly wake: () => void;
}

export class VirtualClock implements Clock {
  private wall: number;
  private elapsed = 0;
  private order = 0;
  private readonly sleepers = new Set<Sleeper>();

  constructor(start: string | number = "2026-01-05T00:00:00.000Z") {
    this.wall = typeof start === "number" ? start : Date.parse(start);
  }

  now(): number {
    return this.wall;
  }

  monotonic(): number {
    return this.elapsed;
  }

  timer(delayMs: number, wake: () => void): () => void {
    const sleeper = { at: this.elapsed + Math.max(0, delayMs), order: this.order++, wake };
    this.sleepers.add(sleeper);
    return () => this.sleepers.delete(sleeper);
  }

  /** Lets time pass, a sleeper at a time; after each, all work that it started has its turn: `rest` waits for it. */
  async advance(duration: string | number, rest: () => Promise<void> = settle): Promise<void> {
    const end = this.elapsed + (typeof duration === "number" ? duration : durationMs(duration));
    await rest();
    for (let next = this.first(end); next !== null; next = this.first(end)) {
      this.pass(next.at - this.elapsed);
      this.sleepers.delete(next);
      next.wake();
      await rest();
    }
    this.pass(end - this.elapsed);
    await rest();
  }

  /** The wall clock is set to another time, or the machine was suspended: no timer notices. */
  jump(toMs: number): void {
    this.wall = toMs;
  }

  /**
   * Lets a long time pass for those who read the wall clock, and its last two seconds for sleepers, too: the engine's
   * loops look at the wall clock once a second, and a day of looks takes long.
   */
  async leap(duration: string | number): Promise<void> {
    const ms = typeof duration === "number" ? duration : durationMs(duration);
    this.jump(this.wall + Math.max(0, ms - 2_000));
    await this.advance(Math.min(ms, 2_000));
  }

  private pass(ms: number): void {
    this.elapsed += ms;
    this.wall += ms;
  }

  private first(until: number): Sleeper | null {
    let first: Sleeper | null = null;
    for (const sleeper of this.sleepers) {
      if (sleeper.at > until) continue;
      if (first === null || sleeper.at < first.at || (sleeper.at === first.at && sleeper.order < first.order))
        first = sleeper;
    }
    return first;
  }
}

/** A few turns of the event loop: enough for what a timer started in this process to come to rest. */
export async function settle(turns = 12): Promise<void> {
  for (let i = 0; i < turns; i++) await new Promise((resolve) => setImmediate(resolve));
}
