/** A page of the file is damaged while the service is down, and a read is the first to meet it. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, openSync, rmSync, writeSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import Database from "better-sqlite3";
import { loadAddon } from "../../src/store/sqlite/native.ts";
import { startTestApp } from "../support/app.ts";
import { BUNDLE } from "../support/process.ts";

/** The service as a process of its own. */
function spawnService(folder: string) {
  const env = { ...process.env, ERRAND_DATA_DIR: folder, ERRAND_PORT: "0" };
  return spawn(process.execPath, [BUNDLE], { env, stdio: "ignore" });
}

/** Damages the first page of a table or an index. */
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

test("a start that fails on it lets go of the folder, and of all that would keep the process", async (t) => {
  const before = await startTestApp();
  const { folder } = before;
  await before.stop({ keep: true });
  damage(join(folder, "errand.db"), "jobs_status");

  const service = spawnService(folder);
  t.after(() => service.kill("SIGKILL"));
  const [code] = await once(service, "exit");
  assert.equal(code, 1);
  for (const start of ["first", "second"])
    await assert.rejects(startTestApp({ folder }), /cannot promise durability/, start);
  rmSync(folder, { recursive: true });
});
