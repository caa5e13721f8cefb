/** What a file holds comes through an upgrade of its schema, and the work under way goes on. */
import assert from "node:assert/strict";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { connect } from "../../src/store/sqlite/connection.ts";
import { doctor } from "../../src/store/sqlite/doctor.ts";
import { MIGRATIONS } from "../../src/store/sqlite/migrations.ts";
import { loadAddon } from "../../src/store/sqlite/native.ts";
import { temporaryFolder } from "../support/app.ts";
import { newPipeline, newStep, response, TENANT } from "../support/factories.ts";
import { openTestStore } from "../support/store.ts";
import { claimAll, outcomeOf } from "./conformance-engine.ts";

const NOW = Date.parse("2026-01-05T00:00:00Z");

function rowsOf(folder: string) {
  const db = connect(join(folder, "errand.db"), loadAddon(join(folder, "native")), 0);
  try {
    return ["jobs", "steps", "attempts", "answers", "payloads"].map((table) =>
      db.prepare(`SELECT * FROM ${table}`).all(),
    );
  } finally {
    db.close();
  }
}

test("a pipeline, its attempts and the answer kept for its key are the same after steps, attempts and answers got row numbers", async (t) => {
  const folder = temporaryFolder();
  const migrations = MIGRATIONS as (typeof MIGRATIONS)[number][];
  const newer = migrations.splice(migrations.findIndex(({ name }) => name === "0003_large_rows"));
  t.after(() => rmSync(folder, { recursive: true }));
  const job = newPipeline(NOW, [newStep("a"), newStep("b", { headers: { "x-api-key": "secret" } })]);
  const once = { key: "k", fingerprint: "f", answer: () => ({ status: 201, headers: {}, body: "first" }) };
  const older = await openTestStore({ folder });
  const deliver = async ({ store }: typeof older, code: number) => {
    for (const claim of await claimAll(store, NOW + 60_000))
      await store.engine.settle(claim, outcomeOf(claim, response(code, {}, "x".repeat(5_000)), NOW));
  };
  await older.store.jobs.enqueue(TENANT, [job], NOW, once);
  await deliver(older, 500);
  await deliver(older, 200);
  await older.store.close();
  const before = rowsOf(folder);
  assert.deepEqual(
    before.map((rows) => rows.length),
    [1, 2, 2, 1, 1],
  );

  migrations.push(...newer);
  const upgraded = await openTestStore({ folder });
  await upgraded.store.close();
  assert.deepEqual(rowsOf(folder), before);
  assert.equal(doctor(folder, NOW).verdict, "sound");

  const again = await openTestStore({ folder });
  t.after(() => again.store.close());
  await deliver(again, 200);
  assert.equal((await again.store.jobs.get(TENANT, job.id))?.status, "completed");
  assert.ok("replay" in (await again.store.jobs.enqueue(TENANT, [job], NOW, once)));
});
