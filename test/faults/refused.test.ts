/** Starts that are refused: one line that says why, and the data as it was. */
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { cpSync, readdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, type TestContext, test } from "node:test";
import Database from "better-sqlite3";
import { loadAddon } from "../../src/store/sqlite/native.ts";
import { temporaryFolder } from "../support/app.ts";
import { startProcess } from "../support/process.ts";

/** A folder as a service left it that was stopped, with some jobs. */
async function usedFolder(t: TestContext): Promise<string> {
  const service = await startProcess();
  t.after(() => service.cleanUp());
  const jobs = Array.from({ length: 100 }, () => ({ url: "http://127.0.0.1:9/", delay: "1h" }));
  assert.equal((await service.call("POST", "/v1/jobs/batch", { jobs })).status, 201);
  await service.stop();
  return service.folder;
}

/** What stands in every file, as hashes. An empty log, which SQLite leaves where it has looked, is none. */
function contents(folder: string): Map<string, string> {
  const files = readdirSync(folder).filter((name) =>
    /^(errand\.db(-wal)?|test-key|secret-key|before-.*)$/.test(name),
  );
  return new Map(
    files
      .toSorted()
      .map((name) => [name, readFileSync(join(folder, name))] as const)
      .filter(([, bytes]) => bytes.length > 0)
      .map(([name, bytes]) => [name, createHash("sha256").update(bytes).digest("hex")]),
  );
}

async function refused(folder: string, why: RegExp): Promise<void> {
  const before = contents(folder);
  const started = await startProcess({ folder }).catch((error: unknown) => String(error));
  if (typeof started !== "string") {
    await started.cleanUp();
    assert.fail("it has started");
  }
  const [first = "", ...printed] = started.trim().split("\n");
  assert.match(first, /ended with [1-9]/);
  assert.equal(printed.length, 1, `one line, not ${printed.join("\n")}`);
  assert.match(printed[0] ?? "", why);
  assert.deepEqual(contents(folder), before);
}

describe("a start is refused with one line, and the files are unchanged", () => {
  test("beside another process; that one goes on", async (t) => {
    const first = await startProcess();
    t.after(() => first.cleanUp());
    await refused(first.folder, /another Errand is running on the data folder/);
    const { status } = await first.call("POST", "/v1/jobs", { url: "http://127.0.0.1:9/", delay: "1h" });
    assert.equal(status, 201);
  });

  test("on a newer schema", async (t) => {
    const folder = await usedFolder(t);
    const db = new Database(join(folder, "errand.db"), { nativeBinding: loadAddon("") });
    db.exec("INSERT INTO migrations VALUES ('9999_future', 'x', 0)");
    db.close();
    await refused(folder, /newer Errand \(9999_future\)/);
  });

  test("on a file that is no database", async (t) => {
    const folder = await usedFolder(t);
    writeFileSync(join(folder, "errand.db"), "no database at all ".repeat(1_000));
    await refused(folder, /damaged or not an SQLite database/);
  });

  test("on a file that was cut", async (t) => {
    const folder = await usedFolder(t);
    truncateSync(join(folder, "errand.db"), 8_192);
    await refused(folder, /damaged/);
  });

  test("control: a sound copy starts, and that is seen", async (t) => {
    const folder = await usedFolder(t);
    const copy = temporaryFolder();
    t.after(() => rmSync(copy, { recursive: true, force: true }));
    cpSync(folder, copy, { recursive: true });
    await assert.rejects(refused(copy, /./), /it has started/);
  });
});
