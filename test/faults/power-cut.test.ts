/**
 * A power cut at every acknowledgement, without pulling a plug: the writes and syncs of a real process, as strace saw
 * them, are replayed into what a disk may hold then. No such disk may miss a job whose create was answered by then.
 */
import assert from "node:assert/strict";
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import Database from "better-sqlite3";
import { secretBox } from "../../src/base/secret-box.ts";
import { faultsOf } from "../../src/store/sqlite/backup.ts";
import { loadAddon } from "../../src/store/sqlite/native.ts";
import { openStore } from "../../src/store/sqlite/open.ts";
import { temporaryFolder } from "../support/app.ts";
import { VirtualClock } from "../support/clock.ts";
import { startProcess } from "../support/process.ts";
import { startTarget } from "../support/target.ts";
import { CrashDisk, NOTHING_UNSYNCED, randomTear, seeded } from "./crash-states.ts";
import { startLoad } from "./load.ts";
import { readTrace, type SystemCall, straceCommand, written } from "./syscalls.ts";

const ACKNOWLEDGEMENTS = 620;
const TIMEOUT_MS = 240_000;
const CLIENTS = 8;
const FOLLOWED = ["errand.db", "errand.db-wal"];
/** Thousands of small databases are opened: in memory where there is such a place. */
const SCRATCH = existsSync("/dev/shm") ? "/dev/shm" : tmpdir();

const folder = temporaryFolder();
const base = mkdtempSync(join(tmpdir(), "errand-base-"));
const traceFile = `${base}.trace`;
const log = join(folder, "errand.db-wal");

/** The service under load until it is killed; half of the jobs are delivered meanwhile. */
async function record(): Promise<void> {
  const first = await startProcess({ folder });
  await first.stop();
  cpSync(folder, base, { recursive: true });
  const target = await startTarget();
  const strace = straceCommand(traceFile);
  const bundle = [process.execPath, join(import.meta.dirname, "../../dist/errand.cjs")];
  const service = await startProcess({ folder, command: [...strace, ...bundle] as [string, ...string[]] });
  let n = 0;
  const load = startLoad(service, CLIENTS, () => ({
    url: target.url,
    payload: "x".repeat(3_000),
    ...(n++ % 2 === 0 ? { delay: "1h" } : {}),
  }));
  await load.reached(ACKNOWLEDGEMENTS);
  const [child] = readFileSync(`/proc/${service.pid}/task/${service.pid}/children`, "utf8").split(" ");
  process.kill(Number(child), "SIGKILL");
  // strace ends by itself, with everything written, once the process is gone.
  await service.gone;
  await load.stop();
  await target.close();
}

interface Replay {
  /** States looked at, and those where a job was missing or the file was not whole. */
  states: number;
  readonly broken: string[];
  acknowledged: number;
  truncations: number;
}

const SEED = Number(process.env["ERRAND_TEST_SEED"] ?? Math.trunc(Math.random() * 2 ** 31));

/** Goes through the trace and looks at up to `atMost` states. With `deaf` the syncs that the store asks for do nothing. */
async function replay({ atMost = Number.POSITIVE_INFINITY, deaf = false } = {}): Promise<Replay> {
  const random = seeded(SEED);
  const disk = new CrashDisk(folder, base, FOLLOWED);
  const acknowledged = new Set<string>();
  const own = new Set<number>();
  const result: Replay = { states: 0, broken: [], acknowledged: 0, truncations: 0 };
  const look = async (why: string) => {
    result.states += 1;
    const fault = await inspect(
      disk,
      acknowledged,
      result.states % 2 === 0 ? NOTHING_UNSYNCED : randomTear(random),
    );
    if (fault !== null) result.broken.push(`state ${result.states}, ${why}: ${fault}`);
  };
  for await (const { moment, call } of readTrace(traceFile)) {
    if (result.states >= atMost) break;
    if (moment === "begin") {
      const ids = acknowledgedBy(call);
      for (const id of ids) acknowledged.add(id);
      for (const id of ids) await look(`at the answer for ${id}`);
    }
    if (call.name === "openat" && moment === "end" && call.result !== null) {
      // SQLite opens the log for writing; the store's own descriptor is there to sync.
      if (call.path === log && call.text.includes("O_RDONLY")) own.add(call.result);
      else own.delete(call.result);
    }
    const isSync = call.name === "fsync" || call.name === "fdatasync";
    if (deaf && isSync && call.path === log && own.has(call.descriptor)) continue;
    // A checkpoint writes into the file itself and then begins the log afresh: the moments that can tear it.
    const tears = call.name === "ftruncate" || (isSync && call.path === join(folder, "errand.db"));
    if (tears && moment === "end") result.truncations += Number(call.name === "ftruncate");
    if (tears && moment === "begin") await look(`before ${call.name}`);
    disk[moment](call);
    if (tears) await look(`at the ${moment} of ${call.name}`);
  }
  result.acknowledged = acknowledged.size;
  return result;
}

function acknowledgedBy(call: SystemCall): string[] {
  if ((call.name !== "write" && call.name !== "writev") || !/^(socket|TCP)/.test(call.path)) return [];
  const text = written(call).toString("latin1");
  if (!text.startsWith("HTTP/1.1 201")) return [];
  return [...text.matchAll(/\{"id":"(job_[0-9a-z]{26})"/g)].map(([, id = ""]) => id);
}

/** Opens a state as the next start would; what is wrong with it, or null. */
async function inspect(
  disk: CrashDisk,
  acknowledged: ReadonlySet<string>,
  tear: Parameters<CrashDisk["writeState"]>[1],
): Promise<string | null> {
  const state = mkdtempSync(join(SCRATCH, "errand-state-"));
  try {
    disk.writeState(state, tear);
    const box = secretBox(readFileSync(join(state, "secret-key"), "utf8").trim());
    const store = openStore({ folder: state, box, clock: new VirtualClock() });
    const [account] = await store.accounts.list();
    const tenant = { accountId: account?.id ?? "", mode: "test" } as const;
    const { items } = await store.jobs.list(tenant, {}, { limit: 100_000, cursor: null });
    await store.close();
    const there = new Set(items.map(({ id }) => id));
    const missing = [...acknowledged].filter((id) => !there.has(id));
    if (missing.length > 0) return `${missing.length} of ${acknowledged.size} acknowledged jobs are missing`;
    const db = new Database(join(state, "errand.db"), { nativeBinding: loadAddon("") });
    const faults = faultsOf(db);
    db.close();
    return faults[0] ?? null;
  } catch (error) {
    return `does not open: ${String(error)}`;
  } finally {
    rmSync(state, { recursive: true, force: true });
  }
}

describe("a power cut", { timeout: TIMEOUT_MS }, () => {
  before(record);
  after(() => {
    for (const path of [folder, base, traceFile]) rmSync(path, { recursive: true, force: true });
  });

  test("no state that a disk may be in at an acknowledgement misses an acknowledged job", {
    timeout: TIMEOUT_MS,
  }, async (t) => {
    const { states, broken, acknowledged, truncations } = await replay();
    t.diagnostic(`seed ${SEED}`);
    t.diagnostic(
      `${states} states, ${acknowledged} acknowledged, ${truncations} cuts of the log, ${broken.length} broken`,
    );
    assert.deepEqual(broken, []);
    assert.ok(acknowledged >= ACKNOWLEDGEMENTS, `${acknowledged} acknowledged`);
    assert.ok(states >= 600);
    assert.ok(truncations >= 2, "the log was begun afresh under load");
  });

  test("control: without the syncs of the store, with those of SQLite alone, jobs are missing", {
    timeout: TIMEOUT_MS,
  }, async (t) => {
    const { states, broken } = await replay({ atMost: 50, deaf: true });
    t.diagnostic(`${broken.length} of ${states} states broken`);
    assert.ok(broken.length > 0);
  });
});
