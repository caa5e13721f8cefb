/** A page of the file is damaged while the service is down, and a read is the first to meet it. */
import assert from "node:assert/strict";
import { closeSync, openSync, writeSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import Database from "better-sqlite3";
import { loadAddon } from "../../src/store/sqlite/native.ts";
import { startTestApp } from "../support/app.ts";

function damage(file: string, table: string): void {
  const db = new Database(file, { nativeBinding: loadAddon("") });
  const page = db
    .prepare<[string], number>("SELECT rootpage FROM sqlite_schema WHERE name = ?")
    .pluck()
    .get(table);
  const bytes = db.pragma("page_size", { simple: true }) as number;
  db.close();
  assert.ok(page !== undefined);
  const fd = openSync(file, "r+");
  writeSync(fd, Buffer.alloc(bytes, 0xff), 0, bytes, (page - 1) * bytes);
  closeSync(fd);
}

test("what cannot be read answers 503 and stops writes; what can be read is read on", async (t) => {
  const before = await startTestApp();
  const { folder } = before;
  const job = { url: "https://example.com/", payload: 1, delay: "1h" };
  const { id } = await before.createJob(job);
  await before.stop({ keep: true });
  damage(join(folder, "errand.db"), "payloads");

  const app = await startTestApp({ folder });
  t.after(() => app.stop());
  assert.equal((await app.call("GET", "/readyz")).status, 200, "nobody has met it");
  const read = await app.call("GET", `/v1/jobs/${id}`);
  assert.deepEqual([read.status, read.body["code"]], [503, "unavailable"]);
  const ready = await app.call("GET", "/readyz");
  assert.equal(ready.status, 503);
  assert.match(ready.body["reason"], /damaged.*errand doctor/);
  assert.equal((await app.call("POST", "/v1/jobs", job)).status, 503);
  const listed = await app.call("GET", "/v1/jobs");
  assert.deepEqual([listed.status, listed.body["data"].length], [200, 1]);
});
