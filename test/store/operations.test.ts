/** `errand backup`, `restore`, `resume` and `doctor`, on the data folder itself. */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import {
  chownSync,
  closeSync,
  existsSync,
  linkSync,
  lstatSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { join } from "node:path";
import { describe, type TestContext, test } from "node:test";
import Database from "better-sqlite3";
import { backup, restore, resume } from "../../src/store/sqlite/backup.ts";
import { doctor, EXIT_OF } from "../../src/store/sqlite/doctor.ts";
import { StoreFault } from "../../src/store/sqlite/fault.ts";
import { loadAddon } from "../../src/store/sqlite/native.ts";
import type { Store } from "../../src/store/store.ts";
import { temporaryFolder } from "../support/app.ts";
import { aSchedule, newJob, TENANT } from "../support/factories.ts";
import { openTestStore } from "../support/store.ts";
import { claimAll } from "./conformance-engine.ts";
import { enqueue } from "./conformance-jobs.ts";

const NOW = Date.parse("2026-01-05T00:00:00Z");
const NOBODY = 65_534;

function folderFor(t: TestContext): string {
  const folder = temporaryFolder();
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** A folder that was used and closed. */
async function used(
  t: TestContext,
  use: (store: Store) => Promise<unknown> = (store) => enqueue(store, newJob(NOW)),
) {
  const folder = folderFor(t);
  const { store } = await openTestStore({ folder });
  await use(store);
  await store.close();
  return folder;
}

function sql(file: string, text: string): void {
  const db = new Database(file, { nativeBinding: loadAddon("") });
  db.exec(text);
  db.close();
}

const ids = async (store: Store) =>
  (await store.jobs.list(TENANT, {}, { limit: 1_000, cursor: null })).items.map(({ id }) => id);

const isRefused = (kind: string, message: RegExp) => (error: unknown) =>
  error instanceof StoreFault &&
  error.kind === kind &&
  message.test(error.message) &&
  !error.message.includes("\n");

describe("backup", () => {
  test("while the service runs: everything acknowledged before it, readable by its owner only", async (t) => {
    const folder = folderFor(t);
    const file = join(folderFor(t), "copy.db");
    const service = await openTestStore({ folder });
    t.after(() => service.store.close());
    const jobs = await enqueue(service.store, ...Array.from({ length: 300 }, () => newJob(NOW)));
    assert.ok(backup(folder, file) > 0);
    await enqueue(service.store, newJob(NOW));
    assert.equal(statSync(file).mode & 0o777, 0o600);
    assert.deepEqual(readdirSync(join(file, "..")), ["copy.db"]);

    const other = folderFor(t);
    restore(other, file);
    const restored = await openTestStore({ folder: other });
    assert.deepEqual((await ids(restored.store)).toSorted(), jobs.map(({ id }) => id).toSorted());
    await restored.store.close();
  });

  test("replaces no file, least of all the database", async (t) => {
    const folder = await used(t);
    assert.throws(() => backup(folder, join(folder, "errand.db")), isRefused("refused", /there already/));
    assert.throws(() => backup(folder, join(folder, "no/where.db")), isRefused("refused", /no folder/));
    assert.throws(() => backup(folderFor(t), join(folder, "x.db")), isRefused("refused", /no Errand data/));
  });

  test("writes through no file or link that somebody else put in its way", async (t) => {
    const folder = await used(t);
    const shared = folderFor(t);
    const [theirs, victim] = [join(shared, "theirs"), join(shared, "victim")];
    for (const file of [theirs, victim]) writeFileSync(file, "as it was");
    linkSync(theirs, join(shared, "one.db.unfinished"));
    symlinkSync(victim, join(shared, "two.db.unfinished"));
    for (const name of ["one.db", "two.db"]) {
      assert.ok(backup(folder, join(shared, name)) > 0);
      assert.equal(lstatSync(join(shared, name)).mode & 0o777, 0o600);
      assert.ok(lstatSync(join(shared, name)).isFile());
    }
    for (const file of [theirs, victim]) assert.equal(readFileSync(file, "utf8"), "as it was");
    assert.deepEqual(readdirSync(shared).toSorted(), ["one.db", "theirs", "two.db", "victim"]);
  });
});

describe("restore", () => {
  test("puts the backup in place, keeps what was there, and holds dispatch until resume", async (t) => {
    const folder = await used(t);
    const file = join(folderFor(t), "copy.db");
    backup(folder, file);
    // The service goes on and is killed: its log stays behind, with jobs in it.
    const script = `import { openTestStore } from "./test/support/store.ts"; import { newJob, TENANT } from "./test/support/factories.ts";
      const { store } = await openTestStore({ folder: process.argv[1] });
      await store.jobs.enqueue(TENANT, [newJob(${NOW})], ${NOW}, null);
      process.kill(process.pid, "SIGKILL");`;
    const run = () =>
      execFileSync(process.execPath, [
        "--import",
        "tsx",
        "--import",
        "./scripts/text-modules.mjs",
        "--input-type=module",
        "-e",
        script,
        folder,
      ]);
    assert.throws(run, /SIGKILL|Command failed/);
    assert.ok(statSync(join(folder, "errand.db-wal")).size > 0, "a stale log");

    restore(folder, file);
    assert.ok(!existsSync(join(folder, "errand.db-wal")));
    assert.equal(statSync(join(folder, "errand.db")).mode & 0o777, 0o600);
    const { store } = await openTestStore({ folder });
    t.after(() => store.close());
    assert.equal((await ids(store)).length, 1, "as it was when the backup was made");
    assert.equal(await store.maintenance.isHeld(), true);
    assert.equal(resume(folder), true);
    assert.equal(await store.maintenance.isHeld(), false, "seen by the running service");
    assert.equal(resume(folder), false);

    const kept = new Database(join(folder, "before-restore.db"), { nativeBinding: loadAddon("") });
    assert.equal(kept.prepare("SELECT count(*) FROM jobs").pluck().get(), 2, "what was replaced is whole");
    kept.close();
  });

  const skip = process.getuid?.() === 0 ? false : "not run as root, who alone can give files away";
  test("by an administrator leaves data that the folder's own user can open", { skip }, async (t) => {
    const folder = await used(t);
    const file = join(folderFor(t), "copy.db");
    backup(folder, file);
    chownSync(folder, NOBODY, NOBODY);
    restore(folder, file);
    const { uid, gid } = statSync(join(folder, "errand.db"));
    assert.deepEqual([uid, gid], [NOBODY, NOBODY]);
  });

  test("is refused while a service runs, and for a file that is not a sound backup", async (t) => {
    const folder = await used(t);
    const file = join(folderFor(t), "copy.db");
    backup(folder, file);
    const before = readFileSync(join(folder, "errand.db"));
    const bad = join(folderFor(t), "bad.db");
    const refuses = (kind: string, message: RegExp) => {
      assert.throws(() => restore(folder, bad), isRefused(kind, message));
      assert.ok(before.equals(readFileSync(join(folder, "errand.db"))), "unchanged");
      rmSync(bad, { force: true });
    };
    refuses("refused", /no file/);
    const another = /bad\.db is (?!.*errand restore).*; the data is as it was: restore another backup$/;
    writeFileSync(bad, "nothing of the kind ".repeat(99));
    refuses("damaged", another);
    writeFileSync(bad, "");
    refuses("refused", /bad\.db is empty/);
    sql(bad, "CREATE TABLE theirs (x)");
    refuses("refused", /not one of Errand's/);
    backup(folder, bad);
    sql(bad, "INSERT INTO migrations VALUES ('9999_future', 'x', 0)");
    refuses("refused", /newer Errand/);
    backup(folder, bad);
    spoil(bad);
    refuses("damaged", another);

    const { store } = await openTestStore({ folder });
    assert.throws(() => restore(folder, file), isRefused("locked", /another Errand/));
    await store.close();
  });
});

describe("doctor", () => {
  const results = (folder: string, now = NOW) => {
    const { verdict, findings } = doctor(folder, now);
    const told = findings
      .filter(({ result }) => result !== "ok")
      .map(({ check, result }) => `${check} ${result}`);
    return [EXIT_OF[verdict], ...told];
  };

  test("finds a sound folder sound, and changes nothing in it", async (t) => {
    const folder = await used(t);
    const before = readFileSync(join(folder, "errand.db"));
    assert.deepEqual(results(folder), [0]);
    assert.ok(before.equals(readFileSync(join(folder, "errand.db"))));
    assert.equal(doctor(folder, NOW).findings.length, 9);
    await (await openTestStore({ folder })).store.close();
  });

  test("tells what a crash left, schedules without a next run, a clock that went back, and a hold", async (t) => {
    const folder = await used(t, async (store) => {
      await enqueue(store, newJob(NOW));
      await claimAll(store, NOW);
      await store.schedules.create(aSchedule(NOW, { nextRunAt: null }), null);
      await store.maintenance.hold(true);
    });
    assert.deepEqual(results(folder, NOW - 3_600_000), [
      0,
      "claims warning",
      "schedules warning",
      "clock warning",
      "hold warning",
    ]);
  });

  test("finds damage", async (t) => {
    const folder = await used(t, (store) =>
      enqueue(store, ...Array.from({ length: 200 }, () => newJob(NOW))),
    );
    const file = join(folder, "errand.db");
    sql(file, "UPDATE queue_counts SET count = count + 1");
    assert.deepEqual(results(folder), [1, "counts damaged"]);
    sql(file, "PRAGMA foreign_keys = OFF; DELETE FROM queues");
    assert.ok(results(folder).includes("references damaged"));
    spoil(file);
    assert.deepEqual(results(folder), [1, "integrity damaged"]);
    writeFileSync(file, "nothing of the kind ".repeat(99));
    assert.deepEqual(results(folder), [1, "file damaged"]);
  });

  test("does not examine what a service is working on", async (t) => {
    const folder = folderFor(t);
    const { store } = await openTestStore({ folder });
    t.after(() => store.close());
    assert.deepEqual(results(folder), [2, "lock warning"]);
  });
});

/** Overwrites a page of the jobs, so that only reading everything shows it. */
function spoil(file: string): void {
  const db = new Database(file, { nativeBinding: loadAddon("") });
  const page = Number(db.prepare("SELECT rootpage FROM sqlite_master WHERE name = 'jobs'").pluck().get());
  const pageBytes = Number(db.pragma("page_size", { simple: true }));
  db.close();
  const fd = openSync(file, "r+");
  writeSync(fd, Buffer.alloc(64, 0xff), 0, 64, (page - 1) * pageBytes);
  closeSync(fd);
}
