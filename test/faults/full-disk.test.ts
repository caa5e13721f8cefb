/** The commands on the data folder, on a disk that is full or read-only: refused in one line, nothing left behind, and doctor says why. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { temporaryFolder } from "../support/app.ts";
import { BUNDLE, startProcess, type TestProcess } from "../support/process.ts";
import { mountSmallDisk } from "./failing-disk.ts";

const DISK_BYTES = 16 * 1024 * 1024;
const JOBS = 200;

interface Used {
  readonly folder: string;
  /** A backup that is on another disk. */
  readonly backup: string;
  /** Fills the disk; the answer frees it. */
  fill(): Promise<() => Promise<unknown>>;
  remount(how: "ro" | "rw"): void;
}

/** A small disk with the data of a service that has ended; null where there can be none. */
async function usedDisk(t: TestContext, end: "stop" | "kill"): Promise<Used | null> {
  const disk = mountSmallDisk(DISK_BYTES);
  if (disk === null) {
    t.skip("this user may not mount a filesystem");
    return null;
  }
  const elsewhere = temporaryFolder();
  t.after(() => {
    disk.remove();
    rmSync(elsewhere, { recursive: true, force: true });
  });
  const service: TestProcess = await startProcess({ folder: disk.folder });
  const jobs = Array.from({ length: JOBS }, () => ({ url: "http://127.0.0.1:9/", delay: "1h" }));
  assert.equal((await service.call("POST", "/v1/jobs/batch", { jobs })).status, 201);
  const backup = join(elsewhere, "backup.db");
  assert.equal(errand("backup", backup, "--data-dir", disk.folder).status, 0);
  await service[end]();
  return {
    folder: disk.folder,
    backup,
    fill: () => disk.fill(service),
    remount(how) {
      assert.equal(spawnSync("mount", ["-o", `remount,${how}`, disk.folder]).status, 0);
    },
  };
}

function errand(...args: string[]) {
  return spawnSync(process.execPath, [BUNDLE, ...args], { encoding: "utf8" });
}

test("a backup or a restore that does not fit is refused, and leaves nothing", async (t) => {
  const used = await usedDisk(t, "stop");
  if (used === null) return;
  const { folder, backup } = used;
  const end = await used.fill();
  const before = [readdirSync(folder), readFileSync(join(folder, "errand.db"))];
  for (const args of [
    ["backup", join(folder, "copy.db")],
    ["restore", backup],
  ]) {
    const { status, stderr } = errand(...args, "--data-dir", folder);
    assert.equal(status, 1);
    assert.match(stderr, /^errand: the (disk of|copy) [^\n]+: free some space\n$/);
    // What SQLite makes to look into a file, and does not remove where it may not write.
    for (const suffix of ["-shm", "-wal"]) rmSync(join(folder, `errand.db${suffix}`), { force: true });
    assert.deepEqual([readdirSync(folder), readFileSync(join(folder, "errand.db"))], before);
  }
  await end();
  assert.equal(errand("restore", backup, "--data-dir", folder).status, 0);
});

test("a start on a full disk says which, and what to do", async (t) => {
  const used = await usedDisk(t, "kill");
  if (used === null) return;
  const end = await used.fill();
  const { status, stderr } = errand("serve", "--data-dir", used.folder, "--port", "0");
  assert.equal(status, 1);
  assert.match(
    stderr,
    /^errand: the disk of [^\n]+errand\.db is full or fails \([^\n]+\): free some space\n$/,
  );
  await end();
});

test("doctor on a full disk says that it is full, and not that the data is damaged", async (t) => {
  const used = await usedDisk(t, "stop");
  if (used === null) return;
  const { folder } = used;
  const end = await used.fill();
  const { status, stdout, stderr } = errand("doctor", "--data-dir", folder);
  assert.equal(status, 1);
  assert.match(stdout, /^space +warning +only 0 MiB are free/m);
  assert.match(stderr, /is unreadable\n$/);
  await end();
  assert.equal(errand("doctor", "--data-dir", folder).status, 0);
});

test("doctor looks at what a crash left on a disk that is read-only now as at any other", async (t) => {
  const used = await usedDisk(t, "kill");
  if (used === null) return;
  used.remount("ro");
  const { status, stdout, stderr } = errand("doctor", "--data-dir", used.folder);
  used.remount("rw");
  assert.equal(status, 0, stderr);
  assert.match(stdout, /^integrity +ok/m);
});
