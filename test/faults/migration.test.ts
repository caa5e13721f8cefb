/** A migration of 1,000,000 jobs killed at any moment: the next start finds the old schema or the new one, whole, and gets to the end. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { cpSync, mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { after, before, describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import Database from "better-sqlite3";
import { seededFolder } from "../../scripts/bench/seed.ts";
import { faultsOf } from "../../src/store/sqlite/backup.ts";
import { loadAddon } from "../../src/store/sqlite/native.ts";

const ROWS = 1_000_000;
/** About two minutes on two calm processors. */
const TIMEOUT_MS = 600_000;
/**
 * The steps of a start that migrates, and how far into each of them one is killed: of what the first two write, and of
 * the time that the last two take. In the last one the store is open and closes, which copies the log into the file.
 * Ascending, since a start finds the log as long as the one before it left it, and writes over it.
 */
const KILLS = {
  copy: [0.1, 0.5, 0.9],
  rebuild: [0, 0.15, 0.3, 0.45, 0.6, 0.75, 0.9],
  commit: [0, 0.5, 1, 1.5],
  open: [0.1, 0.6],
} as const;
type Step = keyof typeof KILLS;
const STEPS = Object.keys(KILLS) as Step[];

const LOG = "errand.db-wal";
/** The migration that this version does not have: see migrating.ts. */
const REBUILD = "9000_rebuild";
const COPY = `before-${REBUILD}.db`;
const LOADER = ["tsx", "../../scripts/text-modules.mjs"].map((name) => import.meta.resolve(name));

/** A start with the further migration. `reached` is false where the process was gone before. */
function startMigrating(folder: string, ...how: string[]) {
  const script = fileURLToPath(import.meta.resolve("./migrating.ts"));
  const child = spawn(
    process.execPath,
    [...LOADER.flatMap((url) => ["--import", url]), script, folder, ...how],
    {
      stdio: ["ignore", "pipe", "pipe"],
    },
  );
  const gone = once(child, "exit");
  const seen = new Map<string, number>();
  const lines = createInterface({ input: child.stdout });
  let logBytes = 0;
  lines.on("line", (line) => {
    seen.set(line, performance.now());
    if (line === "commit") logBytes = sizeOf(join(folder, LOG));
  });
  let errors = "";
  child.stderr.on("data", (chunk: Buffer) => (errors += chunk.toString()));
  return {
    gone,
    errors: () => errors,
    seen,
    /** What the log had grown to when the commit began. */
    logBytes: () => logBytes,
    async reached(step: Step): Promise<boolean> {
      while (!seen.has(step)) {
        const next = await Promise.race([once(lines, "line"), gone.then(() => null)]);
        if (next === null) return seen.has(step);
      }
      return true;
    },
    async kill() {
      child.kill("SIGKILL");
      await gone;
    },
  };
}

/** What a start that nobody kills needs. */
interface Needs {
  readonly copyBytes: number;
  readonly logBytes: number;
  readonly commitMs: number;
  readonly openMs: number;
}

async function migrateToTheEnd(folder: string): Promise<Needs> {
  const start = startMigrating(folder);
  const [code] = (await start.gone) as [number | null];
  assert.equal(code, 0, start.errors());
  const [commit = 0, open = 0] = ["commit", "open"].map((step) => start.seen.get(step));
  return {
    copyBytes: sizeOf(join(folder, COPY)),
    logBytes: start.logBytes(),
    commitMs: open - commit,
    openMs: performance.now() - open,
  };
}

async function killAt(
  folder: string,
  step: Step,
  share: number,
  needs: Needs,
  ...how: string[]
): Promise<void> {
  const start = startMigrating(folder, ...how);
  if (!(await start.reached(step))) assert.fail(`${step} was never reached: ${start.errors()}`);
  const grown = async (name: string, bytes: number) => {
    while (sizeOf(join(folder, name)) < share * bytes) await sleep(1);
  };
  if (step === "copy") await grown(`${COPY}.unfinished`, needs.copyBytes);
  else if (step === "rebuild") await grown(LOG, needs.logBytes);
  else await sleep(share * (step === "commit" ? needs.commitMs : needs.openMs));
  await start.kill();
}

function sizeOf(file: string): number {
  return statSync(file, { throwIfNoEntry: false })?.size ?? 0;
}

interface State {
  readonly migrations: readonly string[];
  /** Every statement of the schema. */
  readonly schema: readonly string[];
  /** Of the jobs and of their payloads: how many, and which. */
  readonly rows: unknown;
}

/** What a start would find. Read only, so that the log is still there for that start. */
function stateOf(folder: string): State {
  const db = new Database(join(folder, "errand.db"), { readonly: true, nativeBinding: loadAddon("") });
  try {
    assert.deepEqual(faultsOf(db), [], "the file is whole");
    assert.deepEqual(db.pragma("foreign_key_check"), []);
    const column = (sql: string) => db.prepare<[], string>(sql).pluck().all();
    return {
      migrations: column("SELECT name FROM migrations ORDER BY name"),
      schema: column("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY name"),
      rows: db
        .prepare(
          `SELECT count(*) AS jobs, sum(seq) AS seqs, sum(due_at % 1000 + seq) AS dues,
             (SELECT count(*) FROM payloads) AS payloads, (SELECT sum(job) FROM payloads) AS payload_seqs FROM jobs`,
        )
        .get(),
    };
  } finally {
    db.close();
  }
}

describe(`a migration of ${ROWS} jobs`, { timeout: TIMEOUT_MS }, () => {
  const work = mkdtempSync(join(tmpdir(), "errand-migration-"));
  const folder = join(work, "data");
  let seeded: string;
  let oldState: State;
  let newState: State;
  let needs: Needs;

  const afresh = () => {
    rmSync(folder, { recursive: true, force: true });
    cpSync(seeded, folder, { recursive: true });
  };
  const which = () => {
    const state = stateOf(folder);
    const found = state.migrations.includes(REBUILD) ? "new" : "old";
    assert.deepEqual(state, found === "new" ? newState : oldState);
    return found;
  };

  before(async () => {
    const { folder: made } = await seededFolder({
      count: ROWS - 1,
      job: { url: "http://127.0.0.1:9/", payload: { hello: "world" } },
    });
    seeded = made;
    oldState = stateOf(seeded);
    assert.equal((oldState.rows as { jobs: number }).jobs, ROWS);
    afresh();
    needs = await migrateToTheEnd(folder);
    newState = stateOf(folder);
    assert.deepEqual(newState.rows, oldState.rows);
    assert.deepEqual(newState.migrations, [...oldState.migrations, REBUILD]);
    assert.notDeepEqual(newState.schema, oldState.schema);
  });
  after(() => {
    rmSync(work, { recursive: true, force: true });
    rmSync(seeded, { recursive: true, force: true });
  });

  test("killed at any moment, leaves the old schema or the new one with every row; a start then gets to the end", {
    timeout: TIMEOUT_MS,
  }, async (t) => {
    const found = { old: 0, new: 0 };
    afresh();
    // Each start is the next one of the one that was killed before it.
    for (const step of STEPS) {
      const states: string[] = [];
      for (const share of KILLS[step]) {
        await killAt(folder, step, share, needs);
        const state = which();
        states.push(state);
        found[state] += 1;
        if (state === "old") continue;
        await migrateToTheEnd(folder);
        assert.equal(which(), "new");
        afresh();
      }
      t.diagnostic(`killed in ${step}, found ${states.join(" ")}`);
    }
    await migrateToTheEnd(folder);
    assert.equal(which(), "new");
    t.diagnostic(
      `${found.old + found.new} kills: the old schema ${found.old} times, the new one ${found.new}`,
    );
    assert.ok(found.old > 0 && found.new > 0, "there were kills before the commit and after it");
  });

  test("control: without its transaction, it leaves neither, and the next start fails", {
    timeout: TIMEOUT_MS,
  }, async () => {
    afresh();
    await killAt(folder, "rebuild", 0.3, needs, "without-transaction");
    assert.throws(which, /Expected values to be strictly deep-equal|deepEqual/);
    await assert.rejects(migrateToTheEnd(folder), /jobs_rebuilt already exists/);
  });
});
