/** A real process is killed around its firings: each due time still makes exactly one job. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import Database from "better-sqlite3";
import { startProcess, type TestProcess } from "../support/process.ts";
import { startTarget } from "../support/target.ts";

const MINUTE = 60_000;
const DUE_TIMES = 400;

test("kill -9 while hundreds of due times are made up for: one job each, and a line each", async (t) => {
  const target = await startTarget();
  let app: TestProcess = await startProcess();
  t.after(async () => {
    await app.cleanUp();
    await target.close();
  });
  const created = await app.call("POST", "/v1/schedules", {
    cron_expr: "* * * * *",
    url: target.url,
    on_missed: "all",
  });
  const { id } = created.body;
  await app.kill();
  const first = Math.floor(Date.now() / MINUTE) * MINUTE - DUE_TIMES * MINUTE;
  const db = new Database(join(app.folder, "errand.db"));
  db.prepare("UPDATE schedules SET next_run_at = ?").run(first);
  db.close();

  for (const n of [1, 30, 60, 120, 250]) {
    app = await startProcess({ folder: app.folder });
    await target.request(n);
    await app.kill();
  }
  app = await startProcess({ folder: app.folder });

  const lines = await ledgerUntil(app, id, (times) => times.length > DUE_TIMES);
  const times = lines.map((line) => Date.parse(line["scheduled_for"]));
  assert.deepEqual(
    times.toReversed(),
    times.map((_, i) => first + i * MINUTE),
    "one line for each due time",
  );
  const ids = lines.map((line) => line["job_id"]);
  assert.ok(lines.every(({ outcome }) => outcome === "late" || outcome === "fired"));
  assert.equal(new Set(ids).size, ids.length);
  const jobs = await pages(app, `/v1/jobs?schedule_id=${id}&limit=100`);
  const made = jobs.map((job) => Date.parse(job["scheduled_for"]));
  assert.equal(new Set(made).size, made.length, "no due time made two jobs");
  assert.ok(ids.every((jobId) => jobs.some((job) => job["id"] === jobId)));
});

async function pages(app: TestProcess, path: string): Promise<Record<string, any>[]> {
  const items: Record<string, any>[] = [];
  for (let cursor: string | null = ""; cursor !== null; ) {
    const { body }: { body: Record<string, any> } = await app.call(
      "GET",
      path + (cursor && `&cursor=${cursor}`),
    );
    items.push(...body["data"]);
    cursor = body["next_cursor"];
  }
  return items;
}

/** The ledger once it is long enough: asked for again and again, as a client would. */
async function ledgerUntil(app: TestProcess, id: string, isDone: (lines: unknown[]) => boolean) {
  for (;;) {
    const lines = await pages(app, `/v1/schedules/${id}/occurrences?limit=100`);
    if (isDone(lines)) return lines;
  }
}
