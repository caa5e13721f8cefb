/** What is stored, and what is done to much of it at once, is in nobody's way. */
import { setTimeout as pause } from "node:timers/promises";
import { calls } from "./calls.ts";
import { Claims } from "./claims.ts";
import { delivered } from "./delivered.ts";
import { percentile } from "./load.ts";
import { payload } from "./paced.ts";
import { probing } from "./probe.ts";
import { cpuOf, type Figure, inTurns, medians, rateOf, sayFigure } from "./rounds.ts";
import { say } from "./say.ts";
import { seededFolder } from "./seed.ts";
import { KEY, type Server, startErrand, startTarget } from "./server.ts";

const headers = { authorization: `Bearer ${KEY}`, "content-type": "application/json" };
const DAY_MS = 86_400_000;

/** Enqueue, end to end, claim and the first page of a list with 1,000,000 stored delayed jobs, against none. */
export async function stored(): Promise<void> {
  const target = await startTarget();
  const job = { url: `${target.url}/`, payload };
  const { folder } = await seededFolder({ count: 1_000_000, job });
  const [empty, full] = [await startErrand(), await startErrand({ folder })];
  const enqueue = (server: Server) =>
    calls(server, {
      url: `${server.url}/v1/jobs`,
      count: 10_000,
      body: () => JSON.stringify({ ...job, delay: "1d" }),
    });
  const list = (server: Server) =>
    calls(server, { url: `${server.url}/v1/jobs?limit=50`, method: "GET", count: 500, connections: 4 });
  const deliver = (server: Server) => delivered(server, target, 5_000);
  for (const [what, run] of [
    ["enqueue", enqueue],
    ["end to end", deliver],
    ["first page of a list", list],
  ] as const) {
    const [without = [], beside = []] = await inTurns(
      () => run(empty),
      () => run(full),
    );
    sayBoth(what, without, beside);
  }
  await Promise.all([empty.stop({ keep: true }), full.stop({ keep: true }), target.stop()]);

  // The rounds of `enqueue` have left delayed jobs in both: enough to claim.
  const stores = await Promise.all([empty, full].map((server) => Claims.open(server.folder)));
  const [without = [], beside = []] = await inTurns(...stores.map((store) => () => store.round()));
  sayBoth("claim", without, beside);
  for (const store of stores) await store.close();
}

function sayBoth(what: string, without: readonly Figure[], beside: readonly Figure[]): void {
  sayFigure(`${what}: empty`, without);
  sayFigure(`${what}: 1,000,000 stored`, beside);
  say(`${what}: ratio`, (rateOf(beside) / rateOf(without)).toFixed(2), "at least 0.9");
  say(`${what}: ratio of CPU`, (cpuOf(beside) / cpuOf(without)).toFixed(2));
}

/** /livez while 100,000 jobs are removed, and while as many are retried. */
export async function housekeeping(): Promise<void> {
  const target = await startTarget();
  const job = { url: `${target.url}/`, payload };
  const removed = await medians(() => removal(job));
  say("retention of 100,000", `${removed.seconds.toFixed(1)} s`);
  say("/livez meanwhile: p99", `${removed.livezMs.toFixed(1)} ms`, "under 50 ms");
  const retried = await medians(() => retry(job));
  say("retry of 100,000, with their deliveries", `${retried.seconds.toFixed(1)} s`);
  say("/livez meanwhile: p99", `${retried.livezMs.toFixed(1)} ms`, "under 50 ms");
  await target.stop();
}

const MANY = 100_000;

async function removal(job: Record<string, unknown>) {
  const old = Date.now() - 40 * DAY_MS;
  const { folder } = await seededFolder({
    count: MANY,
    job,
    columns: {
      status: "completed",
      lane: null,
      due_at: null,
      created_at: old,
      started_at: old,
      finished_at: old,
      updated_at: old,
      attempts: 1,
    },
  });
  const errand = await startErrand({ folder });
  const { result, livezMs } = await probing(errand, async () => {
    const begun = performance.now();
    while ((await completed(errand)) > 0) await pause(200);
    return (performance.now() - begun) / 1_000;
  });
  await errand.stop();
  return { seconds: result, livezMs: percentile(livezMs, 0.99) };
}

async function retry(job: Record<string, unknown>) {
  const recent = Date.now() - DAY_MS;
  const { folder } = await seededFolder({
    count: MANY,
    job,
    columns: {
      status: "failed",
      lane: null,
      due_at: null,
      started_at: recent,
      finished_at: recent,
      attempts: 3,
      spent: 3,
    },
  });
  const errand = await startErrand({ folder });
  const { result, livezMs } = await probing(errand, async () => {
    const begun = performance.now();
    const answer = await fetch(`${errand.url}/v1/jobs/retry`, { method: "POST", headers, body: "{}" });
    const text = await answer.text();
    if (!text.includes(String(MANY))) throw new Error(`retried something else: ${text}`);
    return (performance.now() - begun) / 1_000;
  });
  await errand.stop();
  return { seconds: result, livezMs: percentile(livezMs, 0.99) };
}

async function completed(server: Server): Promise<number> {
  const answer = await fetch(`${server.url}/v1/queues/default`, { headers });
  return /"completed":(\d+)/.exec(await answer.text())?.[1] === "0" ? 0 : 1;
}
