/** Large bodies: what is done to many jobs is done to some 8 MB of them at a time, so that nobody else has to wait long. */
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { RawJson } from "../../src/base/json.ts";
import type { NewJob } from "../../src/jobs/job.ts";
import { cancel, reject } from "../../src/jobs/lifecycle.ts";
import { newJob, newPipeline, newStep, response, TENANT } from "../support/factories.ts";
import { openTestStore } from "../support/store.ts";
import { claimAll, outcomeOf } from "./conformance-engine.ts";
import { enqueue } from "./conformance-jobs.ts";

const JOBS = 25;
const MEGABYTE = new RawJson(JSON.stringify("x".repeat(1_000_000)));
/** 8 MiB, and the job with which they are full. */
const AT_ONCE = 9;

async function storeWith(t: TestContext, fields: Partial<NewJob>, count = JOBS) {
  const opened = await openTestStore();
  t.after(() => opened.close());
  const now = opened.clock.now();
  const made = Array.from({ length: count }, () => newJob(now, { payload: MEGABYTE, ...fields }));
  await enqueue(opened.store, ...made);
  /** How many jobs changed in each commit. */
  const commits: number[] = [];
  opened.store.subscribe((changes) => commits.push(changes.filter(({ kind }) => kind === "job").length));
  return { store: opened.store, now, commits };
}

const CALLED_BACK = { callbackUrl: "http://127.0.0.1:9/" };

test("a claim takes a few at a time; the lanes that it does not come to are asked for again", async (t) => {
  const { store, now } = await storeWith(t, {});
  await enqueue(
    store,
    newJob(now, { payload: MEGABYTE, target: { url: "http://127.0.0.1:8/", method: "POST", headers: {} } }),
  );
  const lanes = (await store.engine.lanes()).map(({ lane }) => ({ lane, limit: 64 }));
  const [first, ...others] = await store.engine.claimDue(lanes, now);
  assert.equal(first?.claims.length, AT_ONCE);
  assert.equal(first?.nextDueAt, now, "the others are due");
  assert.equal(others.length, 0);
  const [second] = await store.engine.claimDue(lanes.slice(1), now);
  assert.equal(second?.claims.length, 1);
  assert.equal((await claimAll(store, now)).length, AT_ONCE);
  assert.equal((await claimAll(store, now)).length, JOBS - 2 * AT_ONCE);
});

test("what a step is made of counts, too", async (t) => {
  const { store, now } = await storeWith(t, {}, 0);
  const piped = Array.from({ length: JOBS }, () => newPipeline(now, [newStep("a"), newStep("b")]));
  await enqueue(store, ...piped);
  for (const claim of await claimAll(store, now))
    await store.engine.settle(claim, outcomeOf(claim, response(200, {}, MEGABYTE.text), now));
  assert.equal((await claimAll(store, now)).length, AT_ONCE);
});

test("a bulk command writes a few callbacks at a time", async (t) => {
  const { store, now, commits } = await storeWith(t, CALLED_BACK);
  assert.equal(await store.jobs.changeAll(TENANT, {}, ["pending"], (job) => cancel(job, now)), JOBS);
  assert.deepEqual(commits, [AT_ONCE, AT_ONCE, JOBS - 2 * AT_ONCE]);
});

test("so do approvals that run out together", async (t) => {
  const { store, now, commits } = await storeWith(t, {
    ...CALLED_BACK,
    requiresApproval: true,
    approvalTimeout: "1s",
  });
  const later = now + 1_000;
  const next = await store.maintenance.expireApprovals(later, (job) => reject(job, "system", null, later));
  assert.equal(next, null);
  assert.deepEqual(commits, [AT_ONCE, AT_ONCE, JOBS - 2 * AT_ONCE]);
});

test("retention removes a few at a time, and all in the end", async (t) => {
  const { store, now } = await storeWith(t, {});
  await store.jobs.changeAll(TENANT, {}, ["pending"], (job) => cancel(job, now));
  const left: number[] = [];
  do {
    await store.maintenance.prune(now + 1, now);
    left.push((await store.queues.get(TENANT, "default", now))!.counts.cancelled);
  } while (left.at(-1)! > 0);
  assert.deepEqual(left, [JOBS - AT_ONCE, JOBS - 2 * AT_ONCE, 0]);
});

test("answers that are kept for their Idempotency-Key go a few at a time, too", async (t) => {
  const { store, now } = await storeWith(t, {}, 0);
  const body = "x".repeat(1_000_000);
  const create = (i: number, at: number) => {
    const once = { key: `k${i}`, fingerprint: "f", answer: () => ({ status: 201, headers: {}, body }) };
    return store.jobs.enqueue(TENANT, [newJob(at)], at, once);
  };
  for (let i = 0; i < JOBS; i++) await create(i, now);
  const later = now + 86_400_000;
  assert.equal(await store.maintenance.prune(now, later), true);
  let kept = 0;
  for (let i = 0; i < JOBS; i++) if ("replay" in (await create(i, now))) kept += 1;
  assert.ok(kept > JOBS / 2 && kept < JOBS, `${kept} are left`);
  while (await store.maintenance.prune(now, later));
  for (let i = 0; i < JOBS; i++) assert.ok("value" in (await create(i, later)), "forgotten");
});
