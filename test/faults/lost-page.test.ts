/** SIGTERM after a failed sync lost a part of the log: the log is left as it is, and the next start has every acknowledged job. */
import assert from "node:assert/strict";
import { closeSync, openSync, readFileSync, statSync, writeSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import Database from "better-sqlite3";
import { faultsOf } from "../../src/store/sqlite/backup.ts";
import { loadAddon } from "../../src/store/sqlite/native.ts";
import { startProcess } from "../support/process.ts";
import { failingCalls } from "./failing-disk.ts";
import { missing } from "./load.ts";
import { within } from "./within.ts";

const JOBS = 50;

test("SIGTERM after a page of the log was lost", async (t) => {
  let service = await startProcess();
  t.after(() => service.cleanUp());
  const create = () =>
    service.call("POST", "/v1/jobs", { url: "http://127.0.0.1:9/", payload: "x".repeat(9_000), delay: "1h" });
  const acknowledged: string[] = [];
  for (let i = 0; i < JOBS; i++) acknowledged.push((await create()).body["id"]);
  const [file, log] = ["errand.db", "errand.db-wal"].map((name) => join(service.folder, name)) as [
    string,
    string,
  ];
  const before = statSync(log).size;

  const end = await failingCalls("fdatasync,fsync", "error=EIO")(service);
  assert.equal((await create()).status, 503);
  // As if the kernel had dropped a page that it could not write, and read it again.
  const fd = openSync(log, "r+");
  writeSync(fd, Buffer.alloc(4_096), 0, 4_096, before + 1_024);
  closeSync(fd);
  await end();
  await within("10 s", service.printed(/lost a part of the log; stop Errand and start it again/));
  const [fileThen, logThen] = [readFileSync(file), readFileSync(log)];

  assert.equal(await service.stop(), 0);
  assert.ok(
    fileThen.equals(readFileSync(file)) && logThen.equals(readFileSync(log)),
    "both files are as they were",
  );
  service = await startProcess({ folder: service.folder });
  assert.deepEqual(await missing(service, acknowledged), []);
  assert.equal((await create()).status, 201);
  assert.equal(await service.stop(), 0);
  const db = new Database(file, { readonly: true, nativeBinding: loadAddon("") });
  t.after(() => db.close());
  assert.deepEqual(faultsOf(db), []);
});
