/** What retention removes takes no room on the disk any more: all of it is given back, not only what one step gives. */
import assert from "node:assert/strict";
import { statSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { RawJson } from "../../src/base/json.ts";
import { cancel } from "../../src/jobs/lifecycle.ts";
import { DATABASE_FILE } from "../../src/store/sqlite/open.ts";
import { newJob, TENANT } from "../support/factories.ts";
import { openTestStore } from "../support/store.ts";
import { enqueue } from "./conformance-jobs.ts";

const NOW = Date.parse("2026-01-05T00:00:00Z");
const JOBS = 100;
const PAYLOAD_BYTES = 100_000;
/** What stays of the file: the tables themselves. */
const LEFT_BYTES = 1_000_000;

test("a pass of retention gives back the space of all that it removed", async (t) => {
  const opened = await openTestStore();
  const { store, folder } = opened;
  t.after(() => opened.close());
  const payload = new RawJson(JSON.stringify("x".repeat(PAYLOAD_BYTES)));
  await enqueue(store, ...Array.from({ length: JOBS }, () => newJob(NOW, { payload })));
  await store.jobs.changeAll(TENANT, {}, ["pending"], (job) => cancel(job, NOW));
  let rounds = 0;
  while (await store.maintenance.prune(NOW + 1, NOW)) assert.ok(++rounds < 100, "comes to an end");
  const { size } = statSync(join(folder, DATABASE_FILE));
  assert.ok(size < LEFT_BYTES, `${size} bytes are left of ${JOBS * PAYLOAD_BYTES}`);
  assert.ok(rounds > 1, "in small steps");
});

test("what was answered under an Idempotency-Key is kept for 24 hours and takes no room after that", async (t) => {
  const opened = await openTestStore();
  const { store, folder } = opened;
  t.after(() => opened.close());
  const answer = () => ({ status: 201, headers: {}, body: "x".repeat(PAYLOAD_BYTES) });
  const create = (i: number) =>
    store.jobs.enqueue(TENANT, [newJob(NOW)], NOW, { key: `key-${i}`, fingerprint: "same", answer });
  for (let i = 0; i < 30; i++) await create(i);
  const sizeAfter = async (now: number) => {
    let rounds = 0;
    while (await store.maintenance.prune(0, now)) assert.ok(++rounds < 100, "comes to an end");
    return statSync(join(folder, DATABASE_FILE)).size;
  };
  await sizeAfter(NOW + 86_400_000 - 1);
  assert.ok("replay" in (await create(0)));
  assert.ok((await sizeAfter(NOW + 86_400_000)) < LEFT_BYTES);
  assert.ok("value" in (await create(0)));
});
