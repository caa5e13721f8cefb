/** What is stored, and what is done to much of it at once, is in nobody's way. */
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { load, median, percentile } from "./load.ts";
import { payload } from "./paced.ts";
import { probing } from "./probe.ts";
import { say } from "./say.ts";
import { seededFolder } from "./seed.ts";
import { BUNDLE_COMMAND, KEY, type Server, startErrand, startTarget } from "./server.ts";

const ROUNDS = 3;
const headers = { authorization: `Bearer ${KEY}`, "content-type": "application/json" };
const DAY_MS = 86_400_000;

/** Enqueue, end to end and the first page of a list with 1,000,000 stored delayed jobs, against none. */
export async function stored(): Promise<void> {
  const target = await startTarget();
  const job = { url: `${target.url}/`, payload };
  const { folder } = await seededFolder({ count: 1_000_000, job });
  const [empty, full] = [await startErrand(), await startErrand({ folder })];
  const enqueue = (server: Server) =>
    load({
      url: `${server.url}/v1/jobs`,
      key: KEY,
      count: 5_000,
      body: () => JSON.stringify({ ...job, delay: "1d" }),
    });
  const list = (server: Server) =>
    load({ url: `${server.url}/v1/jobs?limit=50`, method: "GET", key: KEY, count: 500, connections: 4 });
  const deliver = async (server: Server) => {
    await fetch(`${target.url}/reset`);
    const count = 5_000;
    const begun = performance.now();
    await load({ url: `${server.url}/v1/jobs`, key: KEY, count, body: () => JSON.stringify(job) });
    await fetch(`${target.url}/until/${count}`);
    await pause(300);
    return { perSecond: (count / (performance.now() - begun)) * 1_000 };
  };
  for (const [what, run] of [
    ["enqueue", enqueue],
    ["end to end", deliver],
    ["first page of the list", list],
  ] as const) {
    const rates = { empty: [] as number[], full: [] as number[] };
    const cpu = { empty: 0, full: 0 };
    for (const server of [empty, full]) await run(server);
    for (let i = 0; i < ROUNDS; i++) {
      for (const [name, server] of [
        ["empty", empty],
        ["full", full],
      ] as const) {
        const before = server.cpuSeconds();
        rates[name].push((await run(server)).perSecond);
        cpu[name] += server.cpuSeconds() - before;
      }
    }
    say(`${what}: empty`, `${median(rates.empty).toFixed(0)}/s`);
    say(`${what}: 1,000,000 stored`, `${median(rates.full).toFixed(0)}/s`);
    say(`${what}: ratio`, (median(rates.full) / median(rates.empty)).toFixed(2), "at least 0.9");
    say(`${what}: ratio of CPU`, (cpu.full / cpu.empty).toFixed(2));
  }
  await Promise.all([empty.stop(), full.stop(), target.stop()]);
}

/** /livez while 100,000 jobs are removed, and while as many are retried. */
export async function housekeeping(): Promise<void> {
  const count = 100_000;
  const target = await startTarget();
  const job = { url: `${target.url}/`, payload };
  const old = Date.now() - 40 * DAY_MS;
  const removing = await seededFolder({
    count,
    job,
    columns: {
      status: "completed",
      due_at: null,
      created_at: old,
      started_at: old,
      finished_at: old,
      updated_at: old,
      attempts: 1,
    },
  });
  const first = await startErrand({ folder: removing.folder });
  const removal = await probing(first, async () => {
    const begun = performance.now();
    while ((await completed(first)) > 0) await pause(200);
    return (performance.now() - begun) / 1_000;
  });
  say("retention of 100,000", `${removal.result.toFixed(1)} s`);
  say("/livez meanwhile: p99", `${percentile(removal.livezMs, 0.99).toFixed(1)} ms`, "under 50 ms");
  await first.stop();

  const recent = Date.now() - DAY_MS;
  const retrying = await seededFolder({
    count,
    job,
    columns: {
      status: "failed",
      due_at: null,
      started_at: recent,
      finished_at: recent,
      attempts: 3,
      spent: 3,
    },
  });
  const second = await startErrand({ folder: retrying.folder });
  const retry = await probing(second, async () => {
    const begun = performance.now();
    const answer = await fetch(`${second.url}/v1/jobs/retry`, { method: "POST", headers, body: "{}" });
    const text = await answer.text();
    if (!text.includes(String(count))) throw new Error(`retried something else: ${text}`);
    return (performance.now() - begun) / 1_000;
  });
  say("retry of 100,000, with their deliveries", `${retry.result.toFixed(1)} s`);
  say("/livez meanwhile: p99", `${percentile(retry.livezMs, 0.99).toFixed(1)} ms`, "under 50 ms");
  await Promise.all([second.stop(), target.stop()]);
}

async function completed(server: Server): Promise<number> {
  const answer = await fetch(`${server.url}/v1/queues/default`, { headers });
  return /"completed":(\d+)/.exec(await answer.text())?.[1] === "0" ? 0 : 1;
}

/** Enqueues with deliveries going on, when each sync of the disk takes 5 ms longer. */
export async function slow_sync(): Promise<void> {
  const target = await startTarget();
  const preload = fileURLToPath(new URL("./slow-sync.cjs", import.meta.url));
  const [node, ...bundle] = BUNDLE_COMMAND;
  const errand = await startErrand({ command: [node!, "--require", preload, ...bundle] });
  const body = JSON.stringify({ url: `${target.url}/`, payload });
  const run = () =>
    probing(errand, () => load({ url: `${errand.url}/v1/jobs`, key: KEY, count: 20_000, body: () => body }));
  await run();
  const rates: number[] = [];
  const livez: number[] = [];
  const cpu = errand.cpuSeconds();
  for (let i = 0; i < ROUNDS; i++) {
    const { result, livezMs } = await run();
    rates.push(result.perSecond);
    livez.push(percentile(livezMs, 0.99));
  }
  say("enqueue, delivered", `${median(rates).toFixed(0)}/s`, "at least 4,000/s");
  say("CPU", `${((errand.cpuSeconds() - cpu) / (ROUNDS * 20)).toFixed(3)} s`, "per 1,000 jobs");
  say("/livez meanwhile: p99", `${median(livez).toFixed(1)} ms`, "under 25 ms");
  await Promise.all([errand.stop(), target.stop()]);
}
