/** `errand backup` while 500 jobs a second come in: whole, private, and with every job acknowledged before it began. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { copyFileSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import Database from "better-sqlite3";
import { faultsOf } from "../../src/store/sqlite/backup.ts";
import { loadAddon } from "../../src/store/sqlite/native.ts";
import { temporaryFolder } from "../support/app.ts";
import { BUNDLE, startProcess, type TestProcess } from "../support/process.ts";

const JOBS_A_SECOND = 500;
const TICK_MS = 20;
/** What is there before, so that the copying takes a while. */
const STORED_JOBS = 20_000;

test("under load", async (t) => {
  const service = await startProcess();
  const elsewhere = temporaryFolder();
  t.after(async () => {
    await service.cleanUp();
    rmSync(elsewhere, { recursive: true, force: true });
  });
  const job = { url: "http://127.0.0.1:9/", delay: "1h", payload: "x".repeat(1_000) };
  for (let made = 0; made < STORED_JOBS; made += 500) {
    const { status } = await service.call("POST", "/v1/jobs/batch", {
      jobs: Array.from({ length: 500 }, () => job),
    });
    assert.equal(status, 201);
  }

  const load = openLoad(service, job);
  await load.reached(JOBS_A_SECOND);
  const before = [...load.acknowledged];
  const file = join(elsewhere, "copy.db");
  const stale = join(elsewhere, "stale.db");
  copyFileSync(join(service.folder, "errand.db"), stale);
  const startedMs = Date.now();
  const command = spawn(process.execPath, [BUNDLE, "backup", file, "--data-dir", service.folder]);
  const [code] = (await once(command, "exit")) as [number];
  const seconds = (Date.now() - startedMs) / 1_000;
  const during = load.acknowledged.length - before.length;
  await load.stop();

  assert.equal(code, 0);
  assert.equal(statSync(file).mode & 0o777, 0o600);
  const copy = read(file);
  assert.deepEqual(copy.faults, []);
  const lacking = (ids: ReadonlySet<string>) => before.filter((id) => !ids.has(id)).length;
  assert.equal(lacking(copy.ids), 0);
  assert.equal(copy.ids.size >= STORED_JOBS + before.length, true);
  assert.ok(during > 0, "jobs came in meanwhile");
  assert.equal(load.refused(), 0, "and none of them was refused");
  const control = lacking(read(stale).ids);
  assert.ok(control > 0, "control: a copy of the file alone lacks what is still in the log");
  t.diagnostic(
    `${before.length} acknowledged before, 0 lacking (${control} in a plain copy); ${during} more during ${seconds} s`,
  );
});

/** So many creates a second whether they are answered or not. */
function openLoad(service: TestProcess, job: object) {
  const acknowledged: string[] = [];
  const open = new Set<Promise<void>>();
  let refused = 0;
  let wake = () => {};
  const create = async () => {
    const { status, body } = await service.call("POST", "/v1/jobs", job);
    if (status === 201) acknowledged.push(body["id"]);
    else refused += 1;
    wake();
  };
  const timer = setInterval(() => {
    for (let n = 0; n < (JOBS_A_SECOND * TICK_MS) / 1_000; n++) {
      const one: Promise<void> = create().finally(() => open.delete(one));
      open.add(one);
    }
  }, TICK_MS);
  return {
    acknowledged,
    refused: () => refused,
    reached: (count: number) =>
      new Promise<void>((resolve) => {
        wake = () => {
          if (acknowledged.length >= count) resolve();
        };
      }),
    async stop() {
      clearInterval(timer);
      await Promise.all(open);
    },
  };
}

/** The ids in a database file that no service uses, and what is wrong with it. */
function read(file: string): { ids: ReadonlySet<string>; faults: readonly string[] } {
  const db = new Database(file, { nativeBinding: loadAddon("") });
  try {
    return {
      ids: new Set(db.prepare<[], string>("SELECT id FROM jobs").pluck().all()),
      faults: faultsOf(db),
    };
  } finally {
    db.close();
  }
}
