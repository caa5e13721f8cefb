/** A hundred hostile targets at once: every attempt ends in time, memory stays, no socket does, healthy targets notice nothing. */
import assert from "node:assert/strict";
import { fork } from "node:child_process";
import { once } from "node:events";
import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { systemClock } from "../../src/base/clock.ts";
import { startProcess } from "../support/process.ts";
import { startTarget } from "../support/target.ts";

const TIMEOUT_MS = 5_000;
const ROUNDS = 1;
const HEALTHY = 300;

function residentMiB(pid: number): number {
  return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]) / 1_024;
}

function sockets(pid: number): number {
  const folder = `/proc/${pid}/fd`;
  return readdirSync(folder).filter((fd) => {
    try {
      return readlinkSync(`${folder}/${fd}`).startsWith("socket:");
    } catch {
      return false; // closed since it was listed
    }
  }).length;
}

test("a hundred hostile targets at once", async (t) => {
  const farm = fork(fileURLToPath(new URL("./hostile-farm.ts", import.meta.url)), {
    execArgv: process.execArgv.filter((flag) => !flag.startsWith("--test")),
  });
  t.after(() => farm.disconnect());
  const [{ urls }] = (await once(farm, "message")) as [{ urls: string[] }];
  const target = await startTarget();
  const errand = await startProcess({ env: { ERRAND_RATE_LIMIT: "0" } });
  t.after(async () => {
    await errand.cleanUp();
    await target.close();
  });

  const deliver = async () => {
    const startedAt = systemClock.monotonic();
    const { body } = await errand.call("POST", "/v1/jobs", { url: target.url, payload: { a: 1 } });
    const ended = await errand.call("GET", `/v1/jobs/${body["id"]}?wait=60s`);
    assert.equal(ended.body["status"], "completed", ended.text);
    return systemClock.monotonic() - startedAt;
  };
  // Warm: what the heap takes for ordinary work is not counted.
  const ordinary = Array.from({ length: 1_000 }, () => ({ url: target.url, payload: { a: 1 } }));
  for (let i = 0; i < 5; i++) {
    await errand.call("POST", "/v1/jobs/batch", { jobs: ordinary });
    await deliver();
  }
  const idleMiB = residentMiB(errand.pid);
  const idleSockets = sockets(errand.pid);

  let peakMiB = idleMiB;
  const sampling = setInterval(() => (peakMiB = Math.max(peakMiB, residentMiB(errand.pid))), 50);
  t.after(() => clearInterval(sampling));
  const ids: string[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    const jobs = urls.map((url) => ({ url, timeout: "5s", max_attempts: 1, tags: ["hostile"] }));
    const { body, text } = await errand.call("POST", "/v1/jobs/batch", { jobs });
    assert.ok(body["data"], text);
    for (const job of body["data"]) ids.push(job.id);
  }
  const durations: number[] = [];
  for (let i = 0; i < HEALTHY; i++) durations.push(await deliver());
  const p95 = durations.toSorted((a, b) => a - b)[Math.floor(HEALTHY * 0.95)]!;

  const codes: Record<string, number> = {};
  for (const id of ids) {
    const { body: job } = await errand.call("GET", `/v1/jobs/${id}?wait=60s`);
    assert.ok(job["status"] === "completed" || job["status"] === "failed", job["status"]);
    const code = job["last_error_code"] ?? job["status"];
    codes[code] = (codes[code] ?? 0) + 1;
    assert.ok(job["duration_ms"] <= TIMEOUT_MS + 1_000, `${code}: ${job["duration_ms"]} ms`);
  }
  const grownMiB = peakMiB - idleMiB;
  console.log(
    `${JSON.stringify(codes)}; healthy p95 ${Math.round(p95)} ms; memory ${Math.round(idleMiB)} + ${Math.round(grownMiB)} MiB`,
  );
  assert.ok(p95 < 1_000, `healthy targets: p95 is ${p95} ms`);
  assert.ok(grownMiB < 100, `memory grew by ${grownMiB} MiB`);

  // Connections to those that answered well are kept for a few seconds; then nothing is left.
  const openAtTargets = async () => {
    farm.send("open?");
    const [{ open }] = (await once(farm, "message")) as [{ open: number }];
    return open;
  };
  const giveUpAt = systemClock.monotonic() + 15_000;
  while ((await openAtTargets()) > 0 || sockets(errand.pid) > idleSockets) {
    const left = `${await openAtTargets()} connections at targets, ${sockets(errand.pid)} sockets, ${idleSockets} before`;
    assert.ok(systemClock.monotonic() < giveUpAt, left);
    await errand.call("GET", "/readyz");
  }
});
