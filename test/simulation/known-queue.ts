/** What may hold in a queue: its settings, and while a change is under way the old ones or the new ones. */
import { durationMs } from "../../src/base/duration.ts";
import type { Tenant } from "../../src/base/tenant.ts";
import type { QueueSettings } from "../../src/store/store.ts";

export class KnownQueue {
  readonly tenant: Tenant;
  readonly name: string;
  /** One of these holds; none when nothing is known. */
  private possible: readonly QueueSettings[] = [];
  /** When attempts began, of those that count for every possible rate limit. */
  private starts: number[] = [];

  constructor(tenant: Tenant, name: string) {
    this.tenant = tenant;
    this.name = name;
  }

  get isCertain(): boolean {
    return this.possible.length === 1;
  }

  /** From now until the store is at rest, the old settings hold or the changed ones. */
  changing(changes: Partial<QueueSettings>, now: number): void {
    this.trim(now);
    this.possible = [...this.possible, ...this.possible.map((settings) => ({ ...settings, ...changes }))];
  }

  /** The store is at rest and says what holds. */
  learn({ concurrency, rateLimit, paused }: QueueSettings, now: number): void {
    this.trim(now);
    this.possible = [{ concurrency, rateLimit, paused }];
  }

  forget(): void {
    this.possible = [];
    this.starts = [];
  }

  /** Whatever of it holds, this goes beyond. */
  breaks(isBeyond: (settings: QueueSettings) => boolean): boolean {
    return this.possible.length > 0 && this.possible.every(isBeyond);
  }

  /** An attempt began. True when it is one too many within a period of the wall clock, also across restarts. */
  start(now: number): boolean {
    this.starts.push(now);
    this.trim(now);
    return this.breaks(({ rateLimit }) => {
      if (rateLimit === null) return false;
      const since = now - durationMs(rateLimit.period);
      return this.starts.filter((at) => at > since).length > rateLimit.limit;
    });
  }

  get text(): string {
    return JSON.stringify(this.possible);
  }

  /** A start whose period is over never counts again, also when the period becomes longer; without a limit none does. */
  private trim(now: number): void {
    const periods = this.possible.map(({ rateLimit }) =>
      rateLimit === null ? 0 : durationMs(rateLimit.period),
    );
    const since = now - (periods.length === 0 ? 0 : Math.min(...periods));
    this.starts = this.starts.filter((at) => at > since);
  }
}
