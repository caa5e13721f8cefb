/** A lane comes with the first job that waits for a host and goes when none does: who calls ever new hosts stays small. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import Database from "better-sqlite3";
import { loadAddon } from "../../src/store/sqlite/native.ts";
import { DATABASE_FILE } from "../../src/store/sqlite/open.ts";
import type { Store } from "../../src/store/store.ts";
import { failure, newJob, response, TENANT } from "../support/factories.ts";
import { openTestStore } from "../support/store.ts";
import { claimAll, outcomeOf } from "./conformance-engine.ts";
import { enqueue } from "./conformance-jobs.ts";

const NOW = Date.parse("2026-01-05T00:00:00Z");
/** Retention that removes no job. */
const LONG_AGO = 0;

async function storeFor(t: TestContext) {
  const opened = await openTestStore();
  const { store, folder } = opened;
  t.after(() => opened.close());
  return { store, lanesStored: () => countLanes(join(folder, DATABASE_FILE)) };
}

function countLanes(file: string): number {
  const db = new Database(file, { nativeBinding: loadAddon("") });
  const count = db.prepare<[], number>("SELECT count(*) FROM lanes").pluck().get();
  db.close();
  return count ?? -1;
}

async function pruneAll(store: Store): Promise<void> {
  let rounds = 0;
  while (await store.maintenance.prune(LONG_AGO, NOW)) assert.ok(++rounds < 50, "comes to an end");
}

const jobFor = (host: string, runAt = NOW) => newJob(NOW, { url: `https://${host}.test/hook`, runAt });

test("retention removes every lane in which nothing waits, whatever became of its jobs, and no other", async (t) => {
  const { store, lanesStored } = await storeFor(t);
  const hosts = Array.from({ length: 450 }, (_, i) => `host${i}`);
  await enqueue(store, ...hosts.map((host) => jobFor(host)));
  const claims = await claimAll(store, NOW, 1);
  for (const claim of claims) await store.engine.settle(claim, outcomeOf(claim, response(200), NOW));
  const [waiting] = await enqueue(store, jobFor("later", NOW + 60_000));
  assert.equal(lanesStored(), 451);

  await pruneAll(store);
  assert.equal(lanesStored(), 1);
  assert.deepEqual(
    (await store.engine.lanes()).map(({ lane, dueAt }) => [lane.origin, dueAt]),
    [["https://later.test", waiting!.dueAt]],
  );
  assert.equal((await store.jobs.list(TENANT, {}, { limit: 1_000, cursor: null })).items.length, 451);
});

test("a lane may go while its attempt is under way: the retry waits in one that nobody else ever had", async (t) => {
  const { store, lanesStored } = await storeFor(t);
  await enqueue(store, jobFor("busy"));
  const [claim] = await claimAll(store, NOW, 1);
  await pruneAll(store);
  assert.equal(lanesStored(), 0);

  await enqueue(store, jobFor("other"));
  assert.equal(await store.engine.settle(claim!, outcomeOf(claim!, failure(), NOW)), true);
  const lanes = (await store.engine.lanes()).map(({ lane }) => lane);
  assert.deepEqual(lanes.map(({ origin }) => origin).sort(), ["https://busy.test", "https://other.test"]);
  assert.ok(
    lanes.every(({ id }) => id !== claim!.lane.id),
    "the engine still has the old number in mind",
  );
});
