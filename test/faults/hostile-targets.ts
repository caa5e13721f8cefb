/** A hundred hostile targets at once: every attempt ends in time, memory stays, no socket does, healthy targets notice nothing. */
import assert from "node:assert/strict";
import { fork } from "node:child_process";
import { once } from "node:events";
import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import type { TestContext } from "node:test";
import { fileURLToPath } from "node:url";
import { systemClock } from "../../src/base/clock.ts";
import { type ProcessOptions, startProcess } from "../support/process.ts";
import { startTarget } from "../support/target.ts";
import type { HostileTarget } from "./hostile-farm.ts";

const TIMEOUT_MS = 5_000;
const MAX_GROWTH_MIB = 100;
const HEALTHY = 300;

export async function withstandsHostileTargets(t: TestContext, options: ProcessOptions): Promise<void> {
  const farm = fork(fileURLToPath(new URL("./hostile-farm.ts", import.meta.url)), {
    execArgv: process.execArgv.filter((flag) => !flag.startsWith("--test")),
  });
  t.after(() => farm.disconnect());
  const [{ targets }] = (await once(farm, "message")) as [{ targets: HostileTarget[] }];
  const target = await startTarget();
  const errand = await startProcess({ ...options, env: { ERRAND_RATE_LIMIT: "0" } });
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
  const jobs = targets.map(({ url }) => ({ url, timeout: `${TIMEOUT_MS / 1_000}s`, max_attempts: 1 }));
  const { body: created, text } = await errand.call("POST", "/v1/jobs/batch", { jobs });
  assert.equal(created["data"]?.length, targets.length, text);
  const durations: number[] = [];
  for (let i = 0; i < HEALTHY; i++) durations.push(await deliver());
  const p95Ms = durations.toSorted((a, b) => a - b)[Math.floor(HEALTHY * 0.95)]!;

  for (const [i, { behaviour, end }] of targets.entries()) {
    const { body: job } = await errand.call("GET", `/v1/jobs/${created["data"][i].id}?wait=60s`);
    assert.equal(job["last_error_code"] ?? job["status"], end, `${behaviour}: ${job["last_error"]}`);
    assert.ok(job["duration_ms"] <= TIMEOUT_MS + 1_000, `${behaviour}: ${job["duration_ms"]} ms`);
  }
  const grownMiB = peakMiB - idleMiB;
  t.diagnostic(
    `healthy p95 ${Math.round(p95Ms)} ms; memory ${Math.round(idleMiB)} + ${Math.round(grownMiB)} MiB`,
  );
  assert.ok(p95Ms < 1_000, `healthy targets: p95 is ${p95Ms} ms`);
  assert.ok(grownMiB < MAX_GROWTH_MIB, `memory grew by ${grownMiB} MiB`);

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
}

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
