/** `/metrics`: what Errand is doing, in the text format of Prometheus. No label ever takes an unbounded set of values. */
import { monitorEventLoopDelay } from "node:perf_hooks";
import { Counter, Gauge, Histogram, Registry } from "@prometheus-io/client";
import type { Outcome } from "../jobs/outcome.ts";
import type { Claim, StoreFigures } from "../store/store.ts";

/** Where figures are read when somebody asks for them. */
export interface MetricsSource {
  figures(): Promise<StoreFigures>;
  /** Lanes and attempts, as the dispatcher sees them now. */
  depth(): {
    readonly lanes: number;
    readonly ready: number;
    readonly parked: number;
    readonly inFlight: number;
  };
  isReady(): boolean;
}

/** Users name queues: those with the most jobs get a label of their own, the rest share one. */
const MAX_QUEUES = 100;
const OTHER_QUEUES = "other";

const DURATION_BUCKETS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900];
const LATENESS_BUCKETS = [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 60, 300, 3_600];
const SYNC_BUCKETS = [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1];

/** How often the delay of the event loop is measured. */
const LOOP_RESOLUTION_MS = 10;

export class Metrics {
  private readonly registry = new Registry();
  private readonly loopDelay = monitorEventLoopDelay({ resolution: LOOP_RESOLUTION_MS });
  private readonly attempts: Counter<"outcome" | "kind">;
  private readonly duration: Histogram;
  private readonly lateness: Histogram;
  private readonly sync: Histogram;

  constructor(version: string) {
    const registers = [this.registry];
    const build = { name: "errand_build_info", help: "The version that runs.", registers };
    new Gauge({ ...build, labelNames: ["version"] }).set({ version }, 1);
    this.attempts = new Counter({
      name: "errand_attempts_total",
      help: "Attempts that ended, by the class of the target's status or the error in the way.",
      labelNames: ["outcome", "kind"],
      registers,
    });
    this.duration = new Histogram({
      name: "errand_delivery_duration_seconds",
      help: "How long attempts took.",
      buckets: DURATION_BUCKETS,
      registers,
    });
    this.lateness = new Histogram({
      name: "errand_delivery_lateness_seconds",
      help: "How long after they were due attempts began.",
      buckets: LATENESS_BUCKETS,
      registers,
    });
    this.sync = new Histogram({
      name: "errand_store_sync_duration_seconds",
      help: "How long it took to make commits durable.",
      buckets: SYNC_BUCKETS,
      registers,
    });
    this.loopDelay.enable();
  }

  watch(source: MetricsSource): void {
    serviceGauges(this.registry, source);
    processGauges(this.registry, this.loopDelay);
  }

  onAttempt(claim: Claim, outcome: Outcome): void {
    const kind = claim.callbackOf === null ? "job" : "callback";
    this.attempts.inc({ outcome: nameOf(outcome), kind });
    this.duration.observe(outcome.durationMs / 1_000);
    if (claim.job.startedAt !== null)
      this.lateness.observe(Math.max(0, claim.job.startedAt - claim.dueAt) / 1_000);
  }

  onSync(durationMs: number): void {
    this.sync.observe(durationMs / 1_000);
  }

  async render(): Promise<{ type: string; text: string }> {
    return { type: this.registry.contentType, text: await this.registry.metrics() };
  }

  close(): void {
    this.loopDelay.disable();
  }
}

function nameOf(outcome: Outcome): string {
  return outcome.kind === "response" ? `${Math.floor(outcome.code / 100)}xx` : outcome.code;
}

function serviceGauges(registry: Registry, source: MetricsSource): void {
  const registers = [registry];
  new Gauge({
    name: "errand_ready",
    help: "1 when the service can do its work.",
    registers,
    collect() {
      this.set(source.isReady() ? 1 : 0);
    },
  });
  new Gauge({
    name: "errand_store_bytes",
    help: "Size of the database and of its write-ahead log.",
    labelNames: ["file"],
    registers,
    async collect() {
      const { fileBytes, walBytes } = await source.figures();
      this.set({ file: "database" }, fileBytes);
      this.set({ file: "wal" }, walBytes);
    },
  });
  new Gauge({
    name: "errand_jobs",
    help: `Jobs by queue and state; beyond ${MAX_QUEUES} queues, the smaller ones are "${OTHER_QUEUES}".`,
    labelNames: ["queue", "state"],
    registers,
    async collect() {
      const { jobs } = await source.figures();
      this.reset();
      for (const { queue, state, count } of boundedQueues(jobs)) this.set({ queue, state }, count);
    },
  });
  new Gauge({
    name: "errand_lanes",
    help: "Lanes (queue and origin) with jobs: all, those due and in turn, those due and at a limit.",
    labelNames: ["state"],
    registers,
    collect() {
      const { lanes, ready, parked } = source.depth();
      this.set({ state: "all" }, lanes);
      this.set({ state: "ready" }, ready);
      this.set({ state: "at_limit" }, parked);
    },
  });
  new Gauge({
    name: "errand_attempts_in_flight",
    help: "Attempts under way.",
    registers,
    collect() {
      this.set(source.depth().inFlight);
    },
  });
}

function processGauges(registry: Registry, loopDelay: ReturnType<typeof monitorEventLoopDelay>): void {
  const registers = [registry];
  new Gauge({
    name: "errand_event_loop_delay_seconds",
    help: "How late the event loop was since the last look.",
    labelNames: ["quantile"],
    registers,
    collect() {
      this.set({ quantile: "0.5" }, delayS(loopDelay.percentile(50)));
      this.set({ quantile: "0.99" }, delayS(loopDelay.percentile(99)));
      this.set({ quantile: "1" }, delayS(loopDelay.max));
      loopDelay.reset();
    },
  });
  new Gauge({
    name: "process_resident_memory_bytes",
    help: "Resident memory.",
    registers,
    collect() {
      this.set(process.memoryUsage.rss());
    },
  });
  let countedS = 0;
  new Counter({
    name: "process_cpu_seconds_total",
    help: "CPU time of the process.",
    registers,
    collect() {
      const { user, system } = process.cpuUsage();
      const usedS = (user + system) / 1e6;
      this.inc(usedS - countedS);
      countedS = usedS;
    },
  });
}

/** What was measured is the time between two ticks, and so has the wait that was asked for in it. */
function delayS(measuredNs: number): number {
  return Math.max(0, measuredNs / 1e6 - LOOP_RESOLUTION_MS) / 1_000;
}

/** The counts with at most {@link MAX_QUEUES} names of queues, those with the most jobs. */
export function boundedQueues(jobs: StoreFigures["jobs"]): { queue: string; state: string; count: number }[] {
  const totals = new Map<string, number>();
  for (const { queue, count } of jobs) totals.set(queue, (totals.get(queue) ?? 0) + count);
  const largest = [...totals].sort(([a, x], [b, y]) => y - x || (a < b ? -1 : 1)).slice(0, MAX_QUEUES);
  const named = new Set(largest.map(([queue]) => queue));
  const counts = new Map<string, { queue: string; state: string; count: number }>();
  for (const { queue, status, count } of jobs) {
    const label = named.has(queue) ? queue : OTHER_QUEUES;
    const key = `${label} ${status}`;
    const known = counts.get(key);
    if (known === undefined) counts.set(key, { queue: label, state: status, count });
    else known.count += count;
  }
  return [...counts.values()];
}
