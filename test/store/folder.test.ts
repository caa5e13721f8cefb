/** The data folder: who may open it, what is refused and stays as it was, and what others may read of it. */
import assert from "node:assert/strict";
import { once } from "node:events";
import {
  chownSync,
  copyFileSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { describe, type TestContext, test } from "node:test";
import { Worker } from "node:worker_threads";
import Database from "better-sqlite3";
import { secretBox } from "../../src/base/secret-box.ts";
import { StoreFault } from "../../src/store/sqlite/fault.ts";
import { migrate } from "../../src/store/sqlite/migrate.ts";
import { loadAddon } from "../../src/store/sqlite/native.ts";
import { startTestApp, temporaryFolder } from "../support/app.ts";
import { newJob, response, TENANT } from "../support/factories.ts";
import { openTestStore } from "../support/store.ts";
import { claimAll, outcomeOf } from "./conformance-engine.ts";

const ADDON = loadAddon("");
const NOW = Date.parse("2026-01-05T00:00:00Z");
const NOBODY = 65_534;

function folderFor(t: TestContext): string {
  const folder = temporaryFolder();
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** A folder as a service left it, with one job. */
async function usedFolder(t: TestContext): Promise<string> {
  const folder = folderFor(t);
  const { store } = await openTestStore({ folder });
  await store.jobs.enqueue(TENANT, [newJob(NOW)], NOW, null);
  await store.close();
  return folder;
}

function sql(file: string, text: string): void {
  const db = new Database(file, { nativeBinding: ADDON });
  db.exec(text);
  db.close();
}

async function refused(folder: string, kind: string, message: RegExp): Promise<void> {
  const file = join(folder, "errand.db");
  const before = readFileSync(file);
  await assert.rejects(openTestStore({ folder }), (error) => {
    assert.ok(error instanceof StoreFault, String(error));
    assert.equal(error.kind, kind);
    assert.match(error.message, message);
    assert.doesNotMatch(error.message, /\n/);
    return true;
  });
  assert.ok(before.equals(readFileSync(file)), "the file is unchanged");
  assert.deepEqual(
    readdirSync(folder).filter((name) => name.startsWith("before-")),
    [],
  );
}

describe("the lock", () => {
  test("a second start is refused, and the folder is free again after the first has closed", async (t) => {
    const folder = folderFor(t);
    const first = await openTestStore({ folder });
    await assert.rejects(
      openTestStore({ folder }),
      (error) => error instanceof StoreFault && error.kind === "locked",
    );
    await first.store.close();
    const second = await openTestStore({ folder });
    await second.store.close();
  });

  test("is waited for while another start, which is refused in the end, holds a part of it", async (t) => {
    const folder = folderFor(t);
    const { store } = await openTestStore({ folder });
    await store.close();
    const other = new Worker(
      `const { workerData, parentPort } = require("node:worker_threads");
       const Database = require("better-sqlite3");
       const db = new Database(workerData.file, { nativeBinding: workerData.addon });
       db.exec("BEGIN; SELECT name FROM sqlite_schema");
       parentPort.postMessage("held");
       // The other thread stands still while it waits for the lock, and cannot say that it does.
       Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 50);
       db.close();`,
      { eval: true, workerData: { file: join(folder, "lock"), addon: ADDON } },
    );
    await once(other, "message");
    const second = await openTestStore({ folder });
    await second.store.close();
    await other.terminate();
  });

  test("a start that is refused makes no key: it would take the place of the one that the other start made", async (t) => {
    const folder = folderFor(t);
    const { store } = await openTestStore({ folder });
    await assert.rejects(startTestApp({ folder }), /another Errand is running/);
    assert.deepEqual(
      readdirSync(folder).filter((name) => name.startsWith("secret-key")),
      [],
    );
    await store.close();
  });

  test("a refused start takes no lock with it", async (t) => {
    const folder = await usedFolder(t);
    const file = join(folder, "errand.db");
    copyFileSync(file, `${file}.good`);
    writeFileSync(file, "no database at all ".repeat(100));
    await refused(folder, "damaged", /damaged or not an SQLite database/);
    copyFileSync(`${file}.good`, file);
    await (await openTestStore({ folder })).store.close();
  });
});

describe("beside a running service", () => {
  test("an account made there is seen here, and closing there does no harm", async (t) => {
    const folder = folderFor(t);
    const service = await openTestStore({ folder });
    t.after(() => service.store.close());
    const beside = await openTestStore({ folder, exclusive: false });
    await beside.store.accounts.create({ id: "acct_b", name: "b", createdAt: NOW }, [], []);
    await beside.store.close();
    assert.ok(await service.store.accounts.get("acct_b"));
    await service.store.jobs.enqueue(TENANT, [newJob(NOW)], NOW, null);
    assert.ok(statSync(join(folder, "errand.db-wal")).size > 0, "the log is still that of the service");
  });

  test("it does not change the schema of a folder that a service runs on", async (t) => {
    const folder = await usedFolder(t);
    const file = join(folder, "errand.db");
    const service = await openTestStore({ folder });
    t.after(() => service.store.close());
    sql(file, "DELETE FROM migrations");
    await assert.rejects(
      openTestStore({ folder, exclusive: false }),
      (error) => error instanceof StoreFault && error.kind === "locked",
    );
  });

  test("without a service it makes what is missing", async (t) => {
    const folder = folderFor(t);
    const alone = await openTestStore({ folder, exclusive: false });
    await alone.store.close();
    await (await openTestStore({ folder })).store.close();
  });
});

test("retention keeps what a dedupe_key has to find in a file of the first schema, which did not keep the window", async (t) => {
  const folder = folderFor(t);
  const first = await openTestStore({ folder });
  const keyed = (at: number) => newJob(at, { dedupeKey: "k", dedupeWindow: "30d" });
  const [none, found] = [newJob(NOW), keyed(NOW)];
  await first.store.jobs.enqueue(TENANT, [none, found], NOW, null);
  for (const claim of await claimAll(first.store, NOW))
    await first.store.engine.settle(claim, outcomeOf(claim, response(200), NOW));
  await first.store.close();
  sql(
    join(folder, "errand.db"),
    `DROP INDEX jobs_dedupe_open; DROP INDEX jobs_dedupe_young; ALTER TABLE jobs DROP COLUMN dedupe_until;
     CREATE INDEX jobs_dedupe ON jobs (tenant, dedupe_key, seq) WHERE dedupe_key IS NOT NULL;
     DELETE FROM migrations WHERE name <> '0000_init'`,
  );

  const { store } = await openTestStore({ folder });
  t.after(() => store.close());
  const later = NOW + 30 * 86_400_000 - 1;
  await store.maintenance.prune(later, later);
  assert.equal(await store.jobs.get(TENANT, none.id), null);
  const repeated = await store.jobs.enqueue(TENANT, [keyed(later)], later, null);
  assert.ok("value" in repeated);
  assert.equal(repeated.value[0]?.job.id, found.id);
});

describe("refused, and unchanged", () => {
  test("a newer schema", async (t) => {
    const folder = await usedFolder(t);
    sql(join(folder, "errand.db"), "INSERT INTO migrations VALUES ('9999_future', 'x', 0)");
    await refused(folder, "refused", /newer Errand \(9999_future\)/);
  });

  test("another history", async (t) => {
    const folder = await usedFolder(t);
    sql(join(folder, "errand.db"), "UPDATE migrations SET sha256 = 'x'");
    await refused(folder, "refused", /history .* differs .* 0000_init/);
  });

  test("a database of another program", async (t) => {
    const folder = folderFor(t);
    sql(join(folder, "errand.db"), "CREATE TABLE theirs (x); INSERT INTO theirs VALUES (1)");
    await refused(folder, "refused", /not one of Errand's/);
  });

  test("no database at all", async (t) => {
    const folder = folderFor(t);
    writeFileSync(join(folder, "errand.db"), "hello ".repeat(1_000));
    await refused(folder, "damaged", /damaged or not an SQLite database/);
  });

  test("a database that was cut", async (t) => {
    const folder = await usedFolder(t);
    truncateSync(join(folder, "errand.db"), 8_192);
    await refused(folder, "damaged", /damaged/);
  });

  test("secrets sealed with another key", async (t) => {
    const folder = await usedFolder(t);
    await assert.rejects(
      openTestStore({ folder, box: secretBox("another key that seals other secrets") }),
      (error) => error instanceof StoreFault && /another secret key/.test(error.message),
    );
    await (await openTestStore({ folder })).store.close();
  });
});

test("a migration begins with a copy of the file as it is then, also where an earlier try left one", async (t) => {
  const folder = await usedFolder(t);
  const db = new Database(join(folder, "errand.db"), { nativeBinding: ADDON });
  t.after(() => db.close());
  const copy = join(folder, "before-9000_later.db");
  writeFileSync(copy, "what the file was a month ago");
  migrate(
    db,
    [{ name: "9000_later", sql: "DELETE FROM payloads" }],
    (name) => join(folder, `${name}.db`),
    NOW,
  );
  assert.equal(statSync(copy).mode & 0o777, 0o600);
  const copied = new Database(copy, { readonly: true, nativeBinding: ADDON });
  t.after(() => copied.close());
  const payloadsIn = (one: Database.Database) => one.prepare("SELECT count(*) FROM payloads").pluck().get();
  assert.deepEqual([payloadsIn(copied), payloadsIn(db)], [1, 0]);
});

test("files are their owner's only, and so is a folder that is made", async (t) => {
  const folder = join(folderFor(t), "new");
  const { store } = await openTestStore({ folder });
  t.after(() => store.close());
  await store.jobs.enqueue(TENANT, [newJob(NOW)], NOW, null);
  assert.equal(statSync(folder).mode & 0o777, 0o700);
  const files = readdirSync(folder).filter((name) => statSync(join(folder, name)).isFile());
  assert.deepEqual(files.toSorted(), ["errand.db", "errand.db-shm", "errand.db-wal", "lock"]);
  for (const name of files) assert.equal(statSync(join(folder, name)).mode & 0o777, 0o600, name);
});

const skip = process.getuid?.() === 0 ? false : "not run as root, who alone can be somebody else";
test("a file of another user is refused with what to do about it", { skip }, async (t) => {
  const folder = await usedFolder(t);
  for (const path of ["", "lock"]) chownSync(join(folder, path), NOBODY, NOBODY);
  process.seteuid?.(NOBODY);
  t.after(() => process.seteuid?.(0));
  await assert.rejects(openTestStore({ folder }), /errand\.db belongs to another user: chown it to the one/);
});

test("an empty file is a new database", async (t) => {
  const folder = folderFor(t);
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, "errand.db"), "");
  await (await openTestStore({ folder })).store.close();
});
