/** kill -9 fifty times under load: nothing acknowledged is lost, and only what was under way is sent twice. */
import assert from "node:assert/strict";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { temporaryFolder } from "../support/app.ts";
import { startProcess, type TestProcess } from "../support/process.ts";
import { startTarget } from "../support/target.ts";
import { missing, startLoad } from "./load.ts";
import { within } from "./within.ts";

const KILLS = 50;
const CLIENTS = 8;
/** Attempts at once: the most that a kill may cause to be sent again. */
const IN_FLIGHT = 16;

test(`kill -9 ${KILLS} times under load`, { timeout: 240_000 }, async (t) => {
  const folder = temporaryFolder();
  const sent = new Map<string, number>();
  let duplicates = 0;
  const target = await startTarget(({ headers }) => {
    const id = String(headers["webhook-id"]);
    const before = sent.get(id) ?? 0;
    sent.set(id, before + 1);
    if (before > 0) duplicates += 1;
    // A target that takes a moment, so that there is always something under way.
    return { wait: new Promise((resolve) => setTimeout(resolve, 5)) };
  });
  let service: TestProcess | null = null;
  t.after(async () => {
    await service?.cleanUp();
    await target.close();
    rmSync(folder, { recursive: true, force: true });
  });

  const start = () => startProcess({ folder, env: { ERRAND_ORIGIN_CONCURRENCY: String(IN_FLIGHT) } });
  const acknowledged: string[] = [];
  let most = 0;
  /** Starts it, and waits until it has sent again what the last kill cut short. */
  const startAgain = async (kills: number) => {
    const before = duplicates;
    const running = await start();
    service = running;
    await within("5 s", idle(running));
    assert.ok(duplicates - before <= IN_FLIGHT, `${duplicates - before} were sent again after kill ${kills}`);
    most = Math.max(most, duplicates - before);
    return running;
  };
  for (let round = 0; round < KILLS; round++) {
    const running = await startAgain(round);
    const load = startLoad(running, CLIENTS, () => ({ url: target.url }));
    // Another moment of the load each time.
    await load.reached(20 + ((round * 37) % 101));
    await running.kill();
    await load.stop();
    acknowledged.push(...load.acknowledged);
  }
  assert.deepEqual(await missing(await startAgain(KILLS), acknowledged), []);
  const unsent = acknowledged.filter((id) => !sent.has(id));
  assert.deepEqual(unsent, []);
  assert.ok(duplicates > 0, "there were kills while attempts were under way");
  t.diagnostic(
    `${acknowledged.length} acknowledged, 0 lost, ${duplicates} sent again, at most ${most} after one kill`,
  );
});

describe("control", () => {
  test("without the log, acknowledged jobs are missing", async (t) => {
    const first = await startProcess();
    const load = startLoad(first, CLIENTS, () => ({ url: "http://127.0.0.1:9/", delay: "1h" }));
    await load.reached(50);
    await first.kill();
    await load.stop();
    for (const suffix of ["-wal", "-shm"]) rmSync(join(first.folder, `errand.db${suffix}`));
    // The account is in the log too: the folder is new to the service, which then knows none of the jobs.
    const second = await startProcess({ folder: first.folder });
    t.after(() => second.cleanUp());
    assert.equal((await missing(second, load.acknowledged)).length, load.acknowledged.length);
  });

  test("a job that stays active is seen", async (t) => {
    const target = await startTarget(() => ({ wait: new Promise(() => {}) }));
    const service = await startProcess();
    t.after(() => Promise.all([service.cleanUp(), target.close()]));
    await service.call("POST", "/v1/jobs", { url: target.url });
    await assert.rejects(within("1 s", idle(service)), /not within 1 s/);
  });
});

/** Resolves when no job is active or due: what the last process left has been done. */
async function idle(service: TestProcess): Promise<void> {
  for (;;) {
    const { body } = await service.call("GET", "/v1/jobs?status=active&status=pending&limit=1");
    if (body["data"].length === 0) return;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
