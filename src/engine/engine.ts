/** The engine: dispatcher, scheduler and janitor, started and stopped together. */
import { Dispatcher, type DispatcherParts } from "./dispatcher.ts";
import { Janitor, type JanitorParts } from "./janitor.ts";
import { Loop } from "./loop.ts";
import { Scheduler } from "./scheduler.ts";

export interface EngineParts extends DispatcherParts, JanitorParts {}

/** While the service is held: how often it looks whether `errand resume`, another process, has let it go. */
const HELD_LOOK_MS = 1_000;

export class Engine {
  private readonly parts: EngineParts;
  private readonly dispatcher: Dispatcher;
  private readonly scheduler: Scheduler;
  private readonly janitor: Janitor;
  private readonly held: Loop;

  constructor(parts: EngineParts) {
    this.parts = parts;
    this.dispatcher = new Dispatcher(parts);
    this.scheduler = new Scheduler(parts);
    this.janitor = new Janitor(parts);
    this.held = new Loop(
      (now) => this.sendUnlessHeld(now),
      parts.clock,
      (error) => parts.log.error({ err: error }, "starting to dispatch failed; trying again"),
    );
  }

  /**
   * Begins to dispatch and to fire schedules, unless a restore has put that on hold: then what the backup was doing is
   * pending, so that it can be cancelled before it is sent again.
   */
  async start(): Promise<void> {
    await this.dispatcher.recover();
    if ((await this.sendUnlessHeld(this.parts.clock.now())) !== null) {
      this.parts.log.warn("dispatch and cron are paused since a restore; `errand resume` starts them");
      this.held.start();
    }
    this.janitor.start();
  }

  private async sendUnlessHeld(now: number): Promise<number | null> {
    if (await this.parts.store.maintenance.isHeld()) return now + HELD_LOOK_MS;
    await this.dispatcher.start();
    this.scheduler.start();
    return null;
  }

  /** In reverse: no new work, then up to `graceMs` for what is under way. */
  async stop(graceMs: number): Promise<void> {
    await this.held.stop();
    await this.janitor.stop();
    await this.scheduler.stop();
    await this.dispatcher.stop(graceMs);
  }

  get depth() {
    return this.dispatcher.depth;
  }
}
