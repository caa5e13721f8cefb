/**
 * Benchmarks, as ratios against a baseline in the same run: `npm run bench`, or `npm run bench -- enqueue latency`.
 * Each figure is the median of three rounds or more, in which the baseline, where there is one, and Errand take turns. Two run only when they are
 * named: `npm run bench -- soak 5` (minutes, 30 by default) and `npm run bench -- peer`.
 */
import { existsSync, rmSync, statSync } from "node:fs";
import { setTimeout as pause } from "node:timers/promises";
import { housekeeping, stored } from "./amounts.ts";
import { calls } from "./calls.ts";
import { delivered } from "./delivered.ts";
import { load, median, percentile } from "./load.ts";
import { paced, payload } from "./paced.ts";
import { peer } from "./peer.ts";
import { compare, inTurns, medians } from "./rounds.ts";
import { say } from "./say.ts";
import { schedules } from "./schedules.ts";
import { BUNDLE_COMMAND, KEY, type Server, startBaseline, startErrand, startTarget } from "./server.ts";
import { slow_sync } from "./slow-sync.ts";
import { soak } from "./soak.ts";
import { hanging, origins } from "./targets.ts";

const later = JSON.stringify({ url: "http://127.0.0.1:9/", payload, delay: "1h" });

const CALLS = 20_000;

const BENCHMARKS: Record<string, () => Promise<void>> = {
  enqueue,
  end_to_end,
  latency,
  read,
  memory,
  start,
  hanging,
  origins,
  stored,
  housekeeping,
  slow_sync,
  schedules,
};

/** These take long, or need what is not part of the project. */
const ON_REQUEST: Record<string, (minutes?: number) => Promise<void>> = { soak, peer };

const chosen = process.argv.slice(2).filter((word) => !isNumber(word));
const minutes = process.argv.slice(2).find(isNumber);
const all = { ...BENCHMARKS, ...ON_REQUEST };
const unknown = chosen.find((name) => !(name in all));
if (unknown !== undefined)
  throw new Error(`no benchmark ${unknown}; there are ${Object.keys(all).join(", ")}`);
for (const [name, run] of Object.entries(chosen.length === 0 ? BENCHMARKS : all)) {
  if (chosen.length > 0 && !chosen.includes(name)) continue;
  process.stdout.write(`\n${name}\n`);
  await run(minutes === undefined ? undefined : Number(minutes));
}

function isNumber(word: string): boolean {
  return /^\d+(\.\d+)?$/.test(word);
}

/** Durable enqueues a second at 64 connections, against a bare route with the same validation. */
async function enqueue(): Promise<void> {
  const [bare, errand] = [await startBaseline("bare-route"), await startErrand()];
  const [theirs = [], ours = []] = await inTurns(
    () => creates(bare),
    () => creates(errand),
  );
  compare(["bare route", theirs], ["Errand, durable", ours], "at least 0.6, goal 0.7");
  await bare.stop();
  await errand.stop();
}

function creates(server: Server) {
  return calls(server, { url: `${server.url}/v1/jobs`, count: CALLS, body: () => later });
}

/** 10,000 jobs, enqueued by 64 connections, delivered and stored, against the smallest program. */
async function end_to_end(): Promise<void> {
  const count = 10_000;
  const target = await startTarget();
  const [smallest, errand] = [await startBaseline("smallest"), await startErrand()];
  const [theirs = [], ours = []] = await inTurns(
    () => delivered(smallest, target, count),
    () => delivered(errand, target, count),
  );
  compare(["smallest program", theirs], ["Errand", ours], "at least 0.6, goal 0.75; CPU at most 1.4");
  await Promise.all([smallest.stop(), errand.stop(), target.stop()]);
}

/** From the POST to the first byte at an idle local target, one job at a time and at 100 jobs a second. */
async function latency(): Promise<void> {
  const [target, errand] = [await startTarget(), await startErrand()];
  for (const [what, everyMs] of [
    ["idle, one at a time", 20],
    ["100 jobs a second", 10],
  ] as const) {
    const { half, p99, cpu } = await medians(async () => {
      const before = errand.cpuSeconds();
      const count = 500;
      const waits = await paced(errand, target, { count, everyMs, rootOf: () => target.url });
      const used = ((errand.cpuSeconds() - before) / count) * 1_000;
      return { half: percentile(waits, 0.5), p99: percentile(waits, 0.99), cpu: used };
    });
    say(`${what}: median`, `${half.toFixed(1)} ms`, "under 5 ms, goal 3 ms");
    say(`${what}: p99`, `${p99.toFixed(1)} ms`, "goal 15 ms");
    say(`${what}: CPU`, `${cpu.toFixed(3)} s`, "per 1,000 jobs");
  }
  await Promise.all([errand.stop(), target.stop()]);
}

/** GET of a job by id at 64 connections, against the bare route. */
async function read(): Promise<void> {
  const [bare, errand] = [await startBaseline("bare-route"), await startErrand()];
  const created = await fetch(`${errand.url}/v1/jobs`, {
    method: "POST",
    headers: { authorization: `Bearer ${KEY}`, "content-type": "application/json" },
    body: later,
  });
  const { id } = (await created.json()) as { id: string };
  const [theirs = [], ours = []] = await inTurns(
    () => creates(bare),
    () => calls(errand, { url: `${errand.url}/v1/jobs/${id}`, method: "GET", count: CALLS }),
  );
  compare(["bare route (POST)", theirs], ["GET /v1/jobs/{id}", ours], "at least 0.5");
  await Promise.all([bare.stop(), errand.stop()]);
}

/** Memory when idle and after 100,000 jobs, and bytes on disk per finished job. */
async function memory(): Promise<void> {
  const target = await startTarget();
  const { idle, after, bytes } = await medians(() => grown(target));
  say("idle", `${idle.toFixed(0)} MB`, "under 100 MB, goal 90");
  say("after 100,000 jobs", `${after.toFixed(0)} MB`, "goal under 200 MB");
  say("on disk per finished job", `${bytes.toFixed(0)} bytes`, "under 1,600");
  await target.stop();
}

async function grown(target: Server) {
  const count = 100_000;
  await fetch(`${target.url}/reset`);
  const errand = await startErrand();
  await pause(2_000);
  const idle = errand.memoryMb();
  const body = JSON.stringify({ url: `${target.url}/`, payload });
  await load({ url: `${errand.url}/v1/jobs`, key: KEY, count, body: () => body });
  await fetch(`${target.url}/until/${count}`);
  await pause(3_000);
  const after = errand.memoryMb();
  await errand.stop({ keep: true });
  const bytes = statSync(`${errand.folder}/errand.db`).size / count;
  rmSync(errand.folder, { recursive: true, force: true });
  return { idle, after, bytes };
}

/** From the start of the process to the first answer, on an existing data folder; the executable when it was built. */
async function start(): Promise<void> {
  const executable = new URL("../../dist/errand", import.meta.url).pathname;
  const command = existsSync(executable) ? [executable] : BUNDLE_COMMAND;
  const first = await startErrand({ command });
  await load({ url: `${first.url}/v1/jobs`, key: KEY, count: 1_000, body: () => later });
  await first.stop({ keep: true });
  const times: number[] = [];
  for (let i = 0; i < 5; i++) {
    const begun = performance.now();
    const server = await startErrand({ command, folder: first.folder });
    await fetch(`${server.url}/livez`);
    times.push(performance.now() - begun);
    await server.stop({ keep: i < 4 });
  }
  say(command.length === 1 ? "executable" : "bundle", `${median(times).toFixed(0)} ms`, "under 150 ms");
}
