/** A queue's rate limit is counted from the starts that the file remembers, also when the clock was wrong for a while. */
import assert from "node:assert/strict";
import { rmSync } from "node:fs";
import { test } from "node:test";
import { temporaryFolder } from "../support/app.ts";
import { newJob, TENANT } from "../support/factories.ts";
import { openTestStore } from "../support/store.ts";
import { claimAll } from "./conformance-engine.ts";
import { enqueue } from "./conformance-jobs.ts";

const NOW = Date.parse("2026-01-05T00:00:00Z");
const HOUR_MS = 3_600_000;

test("a start that a clock ahead of its time noted holds the queue for one period, not for one more after each restart", async (t) => {
  const folder = temporaryFolder();
  t.after(() => rmSync(folder, { recursive: true }));
  const first = await openTestStore({ folder });
  await first.store.queues.configure(TENANT, "default", { rateLimit: { limit: 1, period: "1h" } }, NOW);
  await enqueue(first.store, ...Array.from({ length: 3 }, () => newJob(NOW)));
  assert.equal((await claimAll(first.store, NOW + 365 * 24 * HOUR_MS)).length, 1);
  assert.equal((await claimAll(first.store, NOW)).length, 0, "the clock is right again");
  await first.store.close();

  const second = await openTestStore({ folder });
  t.after(() => second.store.close());
  assert.equal((await claimAll(second.store, NOW + HOUR_MS)).length, 1);
  assert.equal((await claimAll(second.store, NOW + 2 * HOUR_MS)).length, 1);
});
