/** Acknowledged means on the disk; a failed sync is never acknowledged, nor made good by a later one. */
import assert from "node:assert/strict";
import { closeSync, openSync, readFileSync, statSync, writeFileSync, writeSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, test } from "node:test";
import { Problem } from "../../src/base/errors.ts";
import { RawJson } from "../../src/base/json.ts";
import { connect } from "../../src/store/sqlite/connection.ts";
import { loadAddon } from "../../src/store/sqlite/native.ts";
import { StoreThread } from "../../src/store/sqlite/thread.ts";
import { settle, VirtualClock } from "../support/clock.ts";
import { ioError, type TestDisk, takeDisk } from "../support/disk.ts";
import { newJob, response, TENANT } from "../support/factories.ts";
import { openTestStore, type TestStore } from "../support/store.ts";
import { gate } from "../support/target.ts";
import { claimAll, outcomeOf } from "./conformance-engine.ts";

describe("durability", () => {
  let disk: TestDisk;
  let clock: VirtualClock;
  let opened: TestStore;
  const failures: string[] = [];

  beforeEach(async () => {
    disk = takeDisk();
    clock = new VirtualClock();
    failures.length = 0;
    opened = await openTestStore({
      clock,
      onFailure: (what, error) => failures.push(`${what}: ${String(error)}`),
    });
    disk.syncs = 0;
  });
  afterEach(async () => {
    disk.failWith = null;
    await opened.close();
    disk.restore();
  });

  const enqueue = (payload = "1") =>
    opened.store.jobs.enqueue(
      TENANT,
      [newJob(clock.now(), { payload: new RawJson(payload) })],
      clock.now(),
      null,
    );
  const count = async () =>
    (await opened.store.jobs.list(TENANT, {}, { limit: 100, cursor: null })).items.length;
  const isUnavailable = (error: unknown) =>
    error instanceof Problem && error.code === "unavailable" && error.headers["Retry-After"] === "5";
  /** Lets time pass until the store has no trouble left; the second thread answers in real time. */
  async function recovered(): Promise<void> {
    for (let i = 0; i < 500 && opened.store.trouble() !== null; i++) {
      await clock.advance("1s");
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    assert.equal(opened.store.trouble(), null);
  }

  /** A command whose sync is under way, and fails once it is let through. */
  async function failing() {
    const { wait, open } = gate();
    disk.wait = wait;
    disk.failWith = ioError();
    const first = enqueue();
    await settle();
    return { first, open };
  }

  test("an answer waits for a sync that began after its commit; those meanwhile share the next one", async () => {
    const { wait, open } = gate();
    disk.wait = wait;
    const done: number[] = [];
    const first = enqueue().then(() => done.push(1));
    await settle();
    const others = [2, 3, 4].map((n) => enqueue().then(() => done.push(n)));
    await settle();
    assert.equal(await count(), 1, "the others gather for the next sync");
    assert.deepEqual([done, disk.syncs], [[], 1]);
    open();
    await Promise.all([first, ...others]);
    assert.equal(disk.syncs, 2);
  });

  test("claims and outcomes wait for no sync", async () => {
    await enqueue();
    disk.wait = gate().wait;
    disk.syncs = 0;
    const [claim] = await claimAll(opened.store, clock.now());
    assert.equal(
      await opened.store.engine.settle(claim!, outcomeOf(claim!, response(200), clock.now())),
      true,
    );
    assert.equal(disk.syncs, 0);
    disk.wait = null;
  });

  test("one sync is under way at a time: what a claim takes along shares the next one", async () => {
    const { wait, open } = gate();
    disk.wait = wait;
    const first = enqueue();
    await settle();
    const second = enqueue();
    await claimAll(opened.store, clock.now());
    const third = opened.store.engine.synced();
    const meanwhile = [await count(), disk.syncs];
    open();
    await Promise.all([first, second, third]);
    assert.deepEqual([meanwhile, disk.syncs], [[2, 1], 2]);
  });

  test("a failed sync fails all who waited for it, and those who came meanwhile, though their own would succeed", async () => {
    const { first, open } = await failing();
    const second = enqueue();
    await settle();
    disk.failWith = null;
    disk.wait = null;
    open();
    const results = await Promise.allSettled([first, second]);
    for (const result of results) assert.ok(result.status === "rejected" && isUnavailable(result.reason));
    assert.equal(disk.syncs, 1, "no sync came after the failed one");
  });

  test("so does it fail those whom a claim took along; who comes after that is refused at once", async () => {
    const { first, open } = await failing();
    const second = enqueue();
    await claimAll(opened.store, clock.now());
    disk.failWith = null;
    open();
    for (const { status } of await Promise.allSettled([first, second])) assert.equal(status, "rejected");
    await assert.rejects(enqueue(), isUnavailable);
    assert.equal(disk.syncs, 1, "no sync came after the failed one");
  });

  test("in trouble every write is refused before it is made, claims too, and reads go on", async () => {
    await enqueue();
    disk.failWith = ioError();
    await assert.rejects(enqueue(), isUnavailable);
    assert.match(opened.store.trouble() ?? "", /EIO/);
    assert.equal(failures.length, 1);
    disk.failWith = null;
    await assert.rejects(enqueue(), isUnavailable);
    await assert.rejects(claimAll(opened.store, clock.now()), isUnavailable);
    await assert.rejects(opened.store.maintenance.hold(true), isUnavailable);
    assert.equal(await count(), 2, "reads go on; the refused ones were not written");
  });

  test("trouble passes when everything is in the file and a write of its own got through", async () => {
    disk.failWith = ioError();
    await assert.rejects(enqueue(), isUnavailable);
    disk.syncs = 0;
    for (let i = 0; i < 500 && disk.syncs < 2; i++) {
      await clock.advance("1s");
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    assert.ok(disk.syncs >= 2, "it was tried");
    assert.notEqual(opened.store.trouble(), null, "the disk still fails");
    disk.failWith = null;
    await recovered();
    await enqueue();
    // The one whose sync had failed was never acknowledged; that it is there is no harm.
    assert.equal(await count(), 2);
    assert.equal(failures.length, 2, "each reason is said once");
  });

  for (const lost of ["a page", "all of the last transaction"]) {
    test(`a log that lost ${lost} with a failed sync is not copied into the file, also not by a stop; the next start has what was acknowledged`, async () => {
      await enqueue();
      const log = `${opened.folder}/errand.db-wal`;
      const before = statSync(log).size;
      const file = readFileSync(`${opened.folder}/errand.db`);
      disk.failWith = ioError();
      // Large enough for the file to grow, which is said on its first page.
      await assert.rejects(enqueue(`"${"x".repeat(100_000)}"`), isUnavailable);
      disk.failWith = null;
      // As if the kernel had dropped what it could not write, and read it again.
      const bytes = lost === "a page" ? 4_096 : statSync(log).size - before;
      const fd = openSync(log, "r+");
      writeSync(fd, Buffer.alloc(bytes), 0, bytes, lost === "a page" ? before + 1_024 : before);
      closeSync(fd);
      for (let i = 0; i < 500 && failures.length < 2; i++) {
        await clock.advance("1s");
        await new Promise((resolve) => setTimeout(resolve, 5));
      }
      assert.match(failures[1] ?? "", /lost a part of the log/);
      assert.notEqual(opened.store.trouble(), null);
      assert.ok(file.equals(readFileSync(`${opened.folder}/errand.db`)), "nothing was copied");
      await opened.store.close();
      assert.ok(file.equals(readFileSync(`${opened.folder}/errand.db`)), "nor by the stop");

      opened = await openTestStore({ clock, folder: opened.folder });
      assert.equal(await count(), 1);
    });
  }

  test("a batch in trouble is refused as a whole, and a lock held elsewhere is no trouble", async () => {
    const file = `${opened.folder}/errand.db`;
    const other = connect(file, loadAddon(`${opened.folder}/native`), 0);
    other.exec("BEGIN IMMEDIATE");
    const results = await Promise.allSettled([enqueue(), enqueue(), enqueue()]);
    for (const result of results) assert.ok(result.status === "rejected" && isUnavailable(result.reason));
    assert.equal(opened.store.trouble(), null);
    other.exec("ROLLBACK");
    other.close();
    await enqueue();
    assert.equal(await count(), 1);
  });

  test("a checkpoint that met an error of the disk is trouble as a failed sync is, and is not tried again before the log was looked at", async (t) => {
    const asked: string[] = [];
    let fails = true;
    const { value: ask } = Object.getOwnPropertyDescriptor(StoreThread.prototype, "ask") ?? {};
    t.mock.method(StoreThread.prototype, "ask", function (this: StoreThread, task: "checkpoint") {
      asked.push(task);
      if (!fails) return Reflect.apply(ask, this, [task]);
      return Promise.reject(Object.assign(new Error("disk I/O error"), { code: "SQLITE_IOERR_FSYNC" }));
    });
    for (let i = 0; i < 32; i++) await enqueue(`"${"x".repeat(200_000)}"`).catch(() => {});
    assert.match(opened.store.trouble() ?? "", /SQLITE_IOERR_FSYNC/);
    await assert.rejects(enqueue(), isUnavailable);
    assert.deepEqual(asked, ["checkpoint"]);
    fails = false;
    await recovered();
    assert.deepEqual(asked, ["checkpoint", "rewrite", "restart"]);
    await enqueue();
  });

  test("an error of the store's thread has the name that SQLite gives it", async () => {
    const file = join(opened.folder, "no-database");
    writeFileSync(file, "x".repeat(4_096));
    const thread = new StoreThread(file, loadAddon(join(opened.folder, "native")));
    await assert.rejects(thread.ask("checkpoint"), { code: "SQLITE_NOTADB" });
    await thread.close();
  });

  test("what was acknowledged is there after the store was closed and opened again", async () => {
    await enqueue();
    await opened.store.close();
    await assert.rejects(enqueue(), isUnavailable);
    opened = await openTestStore({ clock, folder: opened.folder });
    assert.equal(await count(), 1);
  });
});
