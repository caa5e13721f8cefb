/** The write-ahead log stays small while 200,000 updates come in and a reader of the events takes nothing. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { statSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { test } from "node:test";
import Database from "better-sqlite3";
import { loadAddon } from "../../src/store/sqlite/native.ts";
import { startProcess, type TestProcess } from "../support/process.ts";

const MIB = 1024 * 1024;
const LIMIT_BYTES = 64 * MIB;
const JOBS = 5_000;
/** 200,000 updates: enough for a log that nobody copies to grow over the limit, as the control shows. */
const ROUNDS = 20;
const LOOK_EVERY_MS = 5;

/** Cancels and retries every job, over and over; the answer is the most that the log held. */
async function largestLog(service: TestProcess): Promise<{ bytes: number; updates: number }> {
  const log = join(service.folder, "errand.db-wal");
  let bytes = 0;
  const look = () => (bytes = Math.max(bytes, statSync(log).size));
  const timer = setInterval(look, LOOK_EVERY_MS);
  let updates = 0;
  try {
    await service.call("POST", "/v1/queues/default/pause");
    for (let made = 0; made < JOBS; made += 1_000) {
      const jobs = Array.from({ length: 1_000 }, () => ({ url: "http://127.0.0.1:9/" }));
      assert.equal((await service.call("POST", "/v1/jobs/batch", { jobs })).status, 201);
    }
    for (let round = 0; round < ROUNDS; round++) {
      for (const act of ["cancel", "retry"]) {
        const { status, text, body } = await service.call("POST", `/v1/jobs/${act}`, { queue: "default" });
        assert.equal(status, 200, text);
        updates += body["count"];
      }
    }
  } finally {
    clearInterval(timer);
  }
  look();
  return { bytes, updates };
}

/** Opens the stream of events and reads nothing of it but that it has begun. */
async function stalledReader({ port, key }: TestProcess) {
  const socket = connect(port, "127.0.0.1");
  socket.on("error", () => {});
  socket.write(`GET /v1/events HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer ${key}\r\n\r\n`);
  const [head] = (await once(socket, "data")) as [Buffer];
  socket.pause();
  assert.match(head.toString(), /^HTTP\/1\.1 200 /);
  return socket;
}

test("the log stays under 64 MB beside a stalled reader of events", async (t) => {
  const service = await startProcess();
  const reader = await stalledReader(service);
  t.after(async () => {
    reader.destroy();
    await service.cleanUp();
  });
  const { bytes, updates } = await largestLog(service);
  t.diagnostic(`${updates} updates, the log had at most ${(bytes / MIB).toFixed(1)} MiB`);
  assert.equal(updates, JOBS * ROUNDS * 2);
  assert.ok(bytes < LIMIT_BYTES);
});

test("control: beside a reader of the file that holds on to an old state, it does not", async (t) => {
  const service = await startProcess();
  const db = new Database(join(service.folder, "errand.db"), { nativeBinding: loadAddon("") });
  t.after(async () => {
    db.close();
    await service.cleanUp();
  });
  db.exec("BEGIN; SELECT count(*) FROM jobs");
  db.prepare("SELECT count(*) FROM jobs").get();
  const { bytes } = await largestLog(service);
  t.diagnostic(`the log had ${(bytes / MIB).toFixed(1)} MiB`);
  assert.ok(bytes > LIMIT_BYTES);
});
