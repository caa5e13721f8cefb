/** A filesystem that is shut down under load, as by a power cut: after it is mounted again no acknowledged job is missing. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { describe, type TestContext, test } from "node:test";
import Database from "better-sqlite3";
import { faultsOf } from "../../src/store/sqlite/backup.ts";
import { loadAddon } from "../../src/store/sqlite/native.ts";
import { startProcess, type TestProcess } from "../support/process.ts";
import { type Fault, failingCalls } from "./failing-disk.ts";
import { type Load, missing, startLoad } from "./load.ts";
import { mountLoopDisk } from "./loop-disk.ts";
import { within } from "./within.ts";

const CLIENTS = 8;
const ROUNDS = 10;
/** Jobs acknowledged in a round before the shutdown; more each round. With these payloads the log is begun afresh meanwhile. */
const JOBS = { first: 40, more: 61 };
const TIMEOUT_MS = 240_000;
const PAYLOAD = "x".repeat(9_000);

interface Result {
  readonly acknowledged: number;
  readonly refused: number;
  readonly missing: number;
}

/** `fault` begins once the service runs. Answers as soon as a job is missing. Null where there can be no such disk. */
async function shutDownUnderLoad(t: TestContext, rounds: number, fault?: Fault): Promise<Result | null> {
  const disk = mountLoopDisk();
  if (typeof disk === "string") {
    t.skip(disk);
    return null;
  }
  let service: TestProcess | null = null;
  t.after(async () => {
    await service?.kill();
    disk.remove();
  });
  const acknowledged: string[] = [];
  let refused = 0;
  for (let round = 0; round < rounds; round++) {
    const running = await startProcess({ folder: disk.folder });
    service = running;
    const end = await fault?.(running);
    const load = startLoad(running, CLIENTS, () => ({
      url: "http://127.0.0.1:9/",
      payload: PAYLOAD,
      delay: "1h",
    }));
    await load.reached(JOBS.first + round * JOBS.more);
    disk.shutDown(round % 2 === 0 ? "dropped" : "flushed");
    // With syncs that lie nothing is ever refused.
    if (fault === undefined) await within("10 s", aRefusal(load));
    await running.kill();
    await load.stop();
    await end?.();
    acknowledged.push(...load.acknowledged);
    refused += refusals(load);

    disk.remount();
    service = await startProcess({ folder: disk.folder });
    const lost = await missing(service, acknowledged);
    await service.stop();
    const db = new Database(join(disk.folder, "errand.db"), { nativeBinding: loadAddon("") });
    const faults = faultsOf(db);
    db.close();
    assert.deepEqual(faults, []);
    if (lost.length > 0) return { acknowledged: acknowledged.length, refused, missing: lost.length };
  }
  return { acknowledged: acknowledged.length, refused, missing: 0 };
}

/** Creates that were not acknowledged, each with the answer that says so. */
function refusals({ statuses }: Load): number {
  assert.deepEqual(new Set([...statuses.keys(), 201, 503]), new Set([201, 503]));
  return statuses.get(503) ?? 0;
}

async function aRefusal(load: Load): Promise<void> {
  while (refusals(load) === 0) await new Promise((resolve) => setTimeout(resolve, 5));
}

describe("a filesystem that is shut down under load", { timeout: TIMEOUT_MS }, () => {
  test(`${ROUNDS} times, with its own journal written out or dropped: no acknowledged job is lost`, {
    timeout: TIMEOUT_MS,
  }, async (t) => {
    const result = await shutDownUnderLoad(t, ROUNDS);
    if (result === null) return;
    t.diagnostic(JSON.stringify(result));
    assert.equal(result.missing, 0);
  });

  test("control: with syncs that do nothing, jobs are lost", async (t) => {
    const result = await shutDownUnderLoad(t, 1, failingCalls("fdatasync,fsync", "retval=0"));
    if (result === null) return;
    t.diagnostic(JSON.stringify(result));
    assert.ok(result.missing > 0);
  });
});
