/** The engine: dispatcher, scheduler and janitor, started and stopped together. */
import type { Store } from "../store/store.ts";
import { Dispatcher, type DispatcherParts } from "./dispatcher.ts";
import { Janitor, type JanitorParts } from "./janitor.ts";
import { Scheduler } from "./scheduler.ts";

export interface EngineParts extends DispatcherParts, JanitorParts {}

export class Engine {
  private readonly store: Store;
  private readonly dispatcher: Dispatcher;
  private readonly scheduler: Scheduler;
  private readonly janitor: Janitor;
  private readonly parts: EngineParts;
  private isSending = false;

  constructor(parts: EngineParts) {
    this.parts = parts;
    this.store = parts.store;
    this.dispatcher = new Dispatcher(parts);
    this.scheduler = new Scheduler(parts);
    this.janitor = new Janitor(parts);
  }

  /** Begins to dispatch and to fire schedules, unless a restore has put that on hold. */
  async start(): Promise<void> {
    if (await this.store.maintenance.isHeld()) {
      this.parts.log.warn("dispatch and cron are paused since a restore; `errand resume` starts them");
    } else {
      await this.resume();
    }
    this.janitor.start();
  }

  /** Whether dispatch and cron are running. */
  get sending(): boolean {
    return this.isSending;
  }

  async resume(): Promise<void> {
    if (this.isSending) return;
    this.isSending = true;
    if (await this.store.maintenance.isHeld()) await this.store.maintenance.hold(false);
    await this.dispatcher.start();
    this.scheduler.start();
  }

  /** In reverse: no new work, then up to `graceMs` for what is under way. */
  async stop(graceMs: number): Promise<void> {
    await this.janitor.stop();
    await this.scheduler.stop();
    await this.dispatcher.stop(graceMs);
  }

  get depth() {
    return this.dispatcher.depth;
  }
}
