/** The rate limits of queues: each counts its own attempts, across a restart, and a clock that was ahead holds none. */
import assert from "node:assert/strict";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import Database from "better-sqlite3";
import { loadAddon } from "../../src/store/sqlite/native.ts";
import { DATABASE_FILE } from "../../src/store/sqlite/open.ts";
import type { Store } from "../../src/store/store.ts";
import { temporaryFolder } from "../support/app.ts";
import { newJob, TENANT } from "../support/factories.ts";
import { openTestStore } from "../support/store.ts";
import { enqueue } from "./conformance-jobs.ts";

const NOW = Date.parse("2026-01-05T00:00:00Z");
const DAY = 86_400_000;

/** Queues with these limits, each with a backlog for a host of its name, in a store that can be opened anew. */
async function storeWith(t: TestContext, limits: Record<string, { limit: number; period: string }>) {
  let opened = await openTestStore();
  t.after(() => opened.close());
  const { store } = opened;
  for (const [queue, rateLimit] of Object.entries(limits)) {
    await store.queues.configure(TENANT, queue, { rateLimit }, NOW);
    await enqueue(
      store,
      ...Array.from({ length: 9 }, () => newJob(NOW, { queue, url: `http://${queue}.test/` })),
    );
  }
  return {
    /** How many attempts begin in each queue, of two that may, and until when it is held. */
    claim: (now: number) => claimTwo(opened.store, now),
    reopen: async () => {
      await opened.store.close();
      opened = await openTestStore({ folder: opened.folder });
    },
  };
}

async function claimTwo(store: Store, now: number): Promise<Record<string, [number, number | null]>> {
  const lanes = (await store.engine.lanes()).map(({ lane }) => lane);
  const results = await store.engine.claimDue(
    lanes.map((lane) => ({ lane, limit: 2 })),
    now,
  );
  return Object.fromEntries(
    lanes.map(({ origin }, i) => {
      const { claims, heldUntil } = results[i]!;
      return [
        new URL(origin).hostname.replace(".test", ""),
        [claims.length, heldUntil === null ? null : heldUntil - NOW],
      ];
    }),
  );
}

test("each queue counts its own attempts, and still does after a restart", async (t) => {
  const { claim, reopen } = await storeWith(t, {
    fast: { limit: 3, period: "10s" },
    slow: { limit: 2, period: "1m" },
  });
  assert.deepEqual(await claim(NOW), { fast: [2, null], slow: [2, 60_000] });
  assert.deepEqual(await claim(NOW + 4_000), { fast: [1, 10_000], slow: [0, 60_000] });
  await reopen();
  assert.deepEqual(await claim(NOW + 10_000), { fast: [2, 14_000], slow: [0, 60_000] });
  await reopen();
  assert.deepEqual(await claim(NOW + 13_999), { fast: [0, 14_000], slow: [0, 60_000] });
  assert.deepEqual(await claim(NOW + 60_000), { fast: [2, null], slow: [2, 120_000] });
});

test("what began by a clock that was ahead holds a queue for one period at most", async (t) => {
  const { claim, reopen } = await storeWith(t, { one: { limit: 1, period: "10s" } });
  assert.deepEqual(await claim(NOW + DAY), { one: [1, DAY + 10_000] });
  assert.deepEqual(await claim(NOW), { one: [0, 10_000] });
  assert.deepEqual(await claim(NOW + 10_000), { one: [1, 20_000] });
  assert.deepEqual(await claim(NOW + DAY), { one: [1, DAY + 10_000] });
  await reopen();
  assert.deepEqual(await claim(NOW), { one: [0, 10_000] });
  assert.deepEqual(await claim(NOW + 10_000), { one: [1, 20_000] });
});

test("a queue without a limit notes no attempts: nothing would ever take them away", async (t) => {
  const folder = temporaryFolder();
  t.after(() => rmSync(folder, { recursive: true }));
  const { store } = await openTestStore({ folder });
  await enqueue(store, newJob(NOW), newJob(NOW));
  assert.deepEqual(Object.values(await claimTwo(store, NOW)), [[2, null]]);
  await store.close();
  const db = new Database(join(folder, DATABASE_FILE), { nativeBinding: loadAddon("") });
  t.after(() => db.close());
  assert.equal(db.prepare("SELECT count(*) FROM queue_starts").pluck().get(), 0);
});
