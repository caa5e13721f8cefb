/** What the store tells and counts of a pipeline with a callback: one job, its attempts, and nothing of the callback. */
import assert from "node:assert/strict";
import { rmSync } from "node:fs";
import { test } from "node:test";
import { secretBox } from "../../src/base/secret-box.ts";
import { seed } from "../../src/first-boot.ts";
import { CALLBACK_QUEUE } from "../../src/jobs/callback.ts";
import { settle } from "../../src/jobs/lifecycle.ts";
import type { Outcome } from "../../src/jobs/outcome.ts";
import { newJob } from "../../src/operations/job-input.ts";
import { connect } from "../../src/store/sqlite/connection.ts";
import { loadAddon } from "../../src/store/sqlite/native.ts";
import { openStore } from "../../src/store/sqlite/open.ts";
import type { Change } from "../../src/store/store.ts";
import { TEST_KEY, temporaryFolder } from "../support/app.ts";
import { VirtualClock } from "../support/clock.ts";
import { newJob as aNewJob, response, TENANT } from "../support/factories.ts";
import { openTestStore } from "../support/store.ts";
import { claimAll, outcomeOf } from "./conformance-engine.ts";
import { enqueue } from "./conformance-jobs.ts";

test("a callback appears in no event, list, queue, count or usage; a pipeline counts as one job", async (t) => {
  const clock = new VirtualClock("2026-03-01T00:00:00.000Z");
  const now = clock.now();
  const folder = temporaryFolder();
  const store = openStore({ folder, box: secretBox("x".repeat(32)), clock });
  t.after(async () => {
    await store.close();
    rmSync(folder, { recursive: true });
  });
  await seed(store, folder, TEST_KEY, now);
  const [account] = await store.accounts.list();
  const tenant = { accountId: account!.id, mode: "test" } as const;
  const changes: Change[] = [];
  store.subscribe((some) => changes.push(...some));

  const url = "http://127.0.0.1:9/";
  const fields = { callback_url: url, max_attempts: 2, retry_delays: ["0s"], steps: [{ url }, { url }] };
  const job = newJob(fields, now, null);
  await store.jobs.enqueue(tenant, [job], now, null);

  /** Ends whatever is due in this way, and says what it was. */
  const deliver = async (code: number) => {
    const lanes = (await store.engine.lanes()).map(({ lane }) => ({ lane, limit: 9 }));
    const claims = (await store.engine.claimDue(lanes, now)).flatMap((lane) => lane.claims);
    for (const claim of claims) {
      const outcome: Outcome = {
        kind: "response",
        code,
        headers: {},
        body: new Uint8Array(),
        truncated: false,
        durationMs: 1,
      };
      const { pipeline } = claim;
      const settlement = settle(claim.job, pipeline?.step.name ?? null, pipeline?.next ?? null, outcome, now);
      assert.equal(await store.engine.settle(claim, settlement), true);
    }
    return claims.map(({ callbackOf, job: one }) => callbackOf ?? `${one.id} ${one.step}`);
  };
  assert.deepEqual(await deliver(500), [`${job.id} 0`]);
  assert.deepEqual(await deliver(200), [`${job.id} 0`]);
  assert.deepEqual(await deliver(200), [`${job.id} 1`]);
  assert.deepEqual(await deliver(200), [job.id]);
  assert.deepEqual(await deliver(200), []);

  assert.equal((await store.jobs.get(tenant, job.id))?.callback?.status, "delivered");
  assert.deepEqual(
    changes.flatMap((change) => (change.kind === "job" ? [`${change.jobId} ${change.status}`] : [])),
    ["pending", "active", "pending", "active", "pending", "active", "completed"].map(
      (status) => `${job.id} ${status}`,
    ),
  );
  assert.deepEqual(
    (await store.jobs.list(tenant, {}, { limit: 9, cursor: null })).items.map(({ id }) => id),
    [job.id],
  );
  assert.deepEqual(await store.queues.usage(tenant, "2026-03"), [
    { day: "2026-03-01", jobs: 1, deliveries: 3 },
  ]);
  const { items: queues } = await store.queues.list(tenant, { limit: 9, cursor: null }, now);
  assert.deepEqual(
    queues.map(({ name, counts }) => [name, counts.completed]),
    [["default", 1]],
  );
  assert.equal(await store.queues.get(tenant, CALLBACK_QUEUE, now), null);
  const { jobs } = await store.maintenance.figures();
  assert.deepEqual(
    jobs.filter(({ count }) => count > 0),
    [{ queue: "default", status: "completed", count: 1 }],
  );

  while (await store.maintenance.prune(now + 1, now));
  assert.equal(await store.jobs.get(tenant, job.id), null);
  assert.deepEqual(
    (await store.maintenance.figures()).jobs.filter(({ count }) => count !== 0),
    [],
  );
});

test("what became of a callback can be read as long as its job, and no longer", async (t) => {
  const opened = await openTestStore();
  t.after(() => opened.close());
  const { store, clock, folder } = opened;
  const now = clock.now();
  const [job] = await enqueue(
    store,
    aNewJob(now, { callbackUrl: "http://127.0.0.1:9/", dedupeKey: "k", dedupeWindow: "1d" }),
  );
  const deliverAll = async () => {
    for (const claim of await claimAll(store, now, 9))
      await store.engine.settle(claim, outcomeOf(claim, response(200), now));
  };
  await deliverAll();
  await deliverAll();
  const fate = async () => (await store.jobs.get(TENANT, job!.id))?.callback?.status;
  const prune = async (at: number) => {
    while (await store.maintenance.prune(at, at));
    while (await store.maintenance.prune(at, at));
  };
  await prune(now + 3_600_000);
  assert.equal(await fate(), "delivered", "retention keeps the job for its dedupe_key, and this with it");
  await prune(now + 2 * 86_400_000);
  assert.equal(await fate(), undefined);
  assert.equal(rowsOf(folder), 0, "nor is its row left over");
});

function rowsOf(folder: string): number {
  const db = connect(`${folder}/errand.db`, loadAddon(`${folder}/native`), 0);
  try {
    return Number(db.prepare("SELECT count(*) FROM jobs").pluck().get());
  } finally {
    db.close();
  }
}
