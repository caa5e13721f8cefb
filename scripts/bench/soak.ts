/** Mixed load with failing, slow and dead targets for half an hour: whether anything grows that should not. */
import { setTimeout as pause } from "node:timers/promises";
import { median, percentile } from "./load.ts";
import { probing } from "./probe.ts";
import { type Sample, Sampler, slope } from "./samples.ts";
import { say } from "./say.ts";
import { type Server, startErrand, startTarget } from "./server.ts";
import { Users } from "./users.ts";

const STANDARD_MINUTES = 30;
const SAMPLE_EVERY_MS = 5_000;
const DRAIN_MS = 60_000;
const HOUR_MS = 3_600_000;
/** Short, so that rows are removed all the time: jobs come to stay for one to two minutes, as retention looks once a minute. */
const RETENTION = "1m";
/** Tables whose rows are kept longer than the soak lasts. */
const KEPT: Readonly<Record<string, string>> = {
  answers: "kept 24 h for Idempotency-Key",
  usage: "a line a day",
};

export async function soak(minutes = STANDARD_MINUTES): Promise<void> {
  const lastsMs = minutes * 60_000;
  const warmUpMs = lastsMs / 3;
  const target = await startTarget();
  const errand = await startErrand({ env: { ERRAND_RETENTION: RETENTION } });
  const users = new Users(errand, target);
  const sampler = new Sampler(errand);
  users.start();
  await sampling(sampler, warmUpMs);
  // Its figures are of the time since the last look, so this one begins what is measured.
  await loopDelayMs(errand);
  const warm = { samples: sampler.samples.length, cpu: errand.cpuSeconds() };
  const { livezMs } = await probing(errand, () => sampling(sampler, lastsMs - warmUpMs));
  const delayMs = await loopDelayMs(errand);
  const cpu = (errand.cpuSeconds() - warm.cpu) / ((lastsMs - warmUpMs) / 1_000);
  await users.stop();
  const unfinished = await drained(users);

  const samples = sampler.samples.slice(warm.samples);
  const growth = slope(samples.map(({ atMs, memoryMb }) => [atMs, memoryMb])) * HOUR_MS;
  const memory = samples.map(({ memoryMb }) => memoryMb);
  say("calls with the answer they should get", String(users.asExpected));
  for (const [what, count] of users.surprises) say("  another answer", String(count), what);
  say("jobs not ended a minute after the last call", String(unfinished), "0");
  say("memory: median, most", `${median(memory).toFixed(0)}, ${Math.max(...memory).toFixed(0)} MB`);
  say("memory: slope after the warm-up", `${growth.toFixed(1)} MB/h`, "under 6 MB/h, over 30 minutes");
  say("event loop delay: p99", `${delayMs.toFixed(1)} ms`, "under 20 ms");
  say("/livez: p99", `${percentile(livezMs, 0.99).toFixed(1)} ms`);
  say("CPU", `${(cpu * 100).toFixed(0)} %`, "of one core");
  say("database, log: at most", `${most(samples, "databaseMb")}, ${most(samples, "logMb")} MB`);
  sayTables(samples);
  sampler.close();
  await Promise.all([errand.stop(), target.stop()]);
}

async function sampling(sampler: Sampler, lastsMs: number): Promise<void> {
  const until = performance.now() + lastsMs;
  while (performance.now() < until) {
    sampler.take();
    await pause(Math.min(SAMPLE_EVERY_MS, Math.max(0, until - performance.now())));
  }
}

/** Errand's own p99 since the last look. */
async function loopDelayMs(errand: Server): Promise<number> {
  const text = await (await fetch(`${errand.url}/metrics`)).text();
  return Number(/^errand_event_loop_delay_seconds\{quantile="0.99"\} (\S+)$/m.exec(text)?.[1]) * 1_000;
}

/** The jobs left, as soon as there are none, else after a minute. */
async function drained(users: Users): Promise<number> {
  const until = performance.now() + DRAIN_MS;
  for (;;) {
    const left = await users.unfinished();
    if (left === 0 || performance.now() > until) return left;
    await pause(1_000);
  }
}

function most(samples: readonly Sample[], what: "databaseMb" | "logMb"): string {
  return Math.max(...samples.map((sample) => sample[what])).toFixed(0);
}

/** Each table's most rows in the first and in the second half after the warm-up: one that is kept in bounds has as many. */
function sayTables(samples: readonly Sample[]): void {
  const half = Math.floor(samples.length / 2);
  const rows = (from: number, to: number, table: string) =>
    Math.max(...samples.slice(from, to).map((sample) => sample.rows.get(table) ?? 0));
  for (const table of samples[0]?.rows.keys() ?? []) {
    const [before, after] = [rows(0, half, table), rows(half, samples.length, table)];
    const grows = after > before * 1.1 + 10;
    const remark = grows ? (KEPT[table] ?? "GROWS") : "";
    say(`rows of ${table}: first, second half`, `${before}, ${after}`, remark);
  }
}
