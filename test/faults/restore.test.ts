/** `errand restore` killed at each of the steps that put the backup in place: what was there or the backup, whole, and nothing between. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { cpSync, mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import Database from "better-sqlite3";
import { faultsOf } from "../../src/store/sqlite/backup.ts";
import { loadAddon } from "../../src/store/sqlite/native.ts";
import { BUNDLE, startProcess, type TestProcess } from "../support/process.ts";

const JOBS_IN_BACKUP = 20;
const JOBS_AFTER = 30;
/** The system calls that give files other names or take names away. */
const STEPS = "/^(rename|link|unlink)";
const MAX_STEPS = 50;

test("killed at any step, a restore leaves the data as it was or the backup, held", async (t) => {
  const work = mkdtempSync(join(tmpdir(), "errand-restore-"));
  const service = await startProcess();
  t.after(async () => {
    await service.cleanUp();
    rmSync(work, { recursive: true, force: true });
  });
  const backup = join(work, "backup.db");
  await create(service, JOBS_IN_BACKUP);
  assert.equal(errand("backup", backup, "--data-dir", service.folder).status, 0);
  await create(service, JOBS_AFTER);
  await service.kill();
  assert.ok(
    statSync(join(service.folder, "errand.db-wal")).size > 0,
    "there is a log that nobody has copied",
  );
  const [before, after] = [
    { jobs: JOBS_IN_BACKUP + JOBS_AFTER, held: null },
    { jobs: JOBS_IN_BACKUP, held: "1" },
  ];

  const found = { before: 0, after: 0 };
  const folder = join(work, "data");
  for (let step = 1; ; step++) {
    assert.ok(step <= MAX_STEPS, "comes to an end");
    rmSync(folder, { recursive: true, force: true });
    cpSync(service.folder, folder, { recursive: true });
    const wasKilled = restoreKilledAt(step, folder, backup);
    const state = stateOf(folder, "errand.db");
    if (!wasKilled) {
      assert.deepEqual(state, after);
      break;
    }
    found[state.held === null ? "before" : "after"] += 1;
    assert.deepEqual(state, state.held === null ? before : after, `killed at step ${step}`);
    // Called again it gets to the end, and what was there at first is kept where it was not replaced yet.
    assert.equal(errand("restore", backup, "--data-dir", folder).status, 0);
    assert.deepEqual(stateOf(folder, "errand.db"), after);
    if (state.held === null) assert.deepEqual(stateOf(folder, "before-restore.db"), before);
  }
  t.diagnostic(`killed and found as it was ${found.before} times, restored ${found.after} times`);
  assert.ok(found.before > 0, "there were kills on the way");
});

test("control: data without its log is not taken for what it was", async (t) => {
  const service = await startProcess();
  t.after(() => service.cleanUp());
  await create(service, JOBS_AFTER);
  await service.kill();
  assert.equal(stateOf(service.folder, "errand.db").jobs, JOBS_AFTER);
  for (const suffix of ["-wal", "-shm"]) rmSync(join(service.folder, `errand.db${suffix}`));
  assert.throws(() => stateOf(service.folder, "errand.db"), /no such table/);
});

async function create(service: TestProcess, count: number): Promise<void> {
  const jobs = Array.from({ length: count }, () => ({ url: "http://127.0.0.1:9/", delay: "1h" }));
  assert.equal((await service.call("POST", "/v1/jobs/batch", { jobs })).status, 201);
}

function errand(...args: string[]) {
  return spawnSync(process.execPath, [BUNDLE, ...args], { encoding: "utf8" });
}

/** False when it came to its end before that step. */
function restoreKilledAt(step: number, folder: string, backup: string): boolean {
  const kill = ["-e", `trace=${STEPS}`, "-e", `inject=${STEPS}:signal=KILL:when=${step}`];
  const command = [process.execPath, BUNDLE, "restore", backup, "--data-dir", folder];
  const { status, signal, stderr } = spawnSync("strace", ["-f", "-o", "/dev/null", ...kill, ...command], {
    encoding: "utf8",
  });
  assert.ok(signal === "SIGKILL" || status === 0, stderr);
  return signal === "SIGKILL";
}

/** What a start would find, and whether it would send. */
function stateOf(folder: string, name: string): { jobs: number; held: string | null } {
  const db = new Database(join(folder, name), { readonly: true, nativeBinding: loadAddon("") });
  try {
    assert.deepEqual(faultsOf(db), [], `${name} is whole`);
    const column = <T>(sql: string) => db.prepare<[], T>(sql).pluck().get();
    return {
      jobs: column<number>("SELECT count(*) FROM jobs") ?? -1,
      held: column<string>("SELECT value FROM facts WHERE name = 'held'") ?? null,
    };
  } finally {
    db.close();
  }
}
