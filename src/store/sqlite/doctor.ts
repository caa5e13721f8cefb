/** `errand doctor`: looks whether a data folder is sound, and changes nothing. */
import { existsSync, statfsSync, statSync } from "node:fs";
import { join } from "node:path";
import Database from "better-sqlite3";
import { describeDuration } from "../../base/duration.ts";
import { databaseOf, faultsOf } from "./backup.ts";
import type { Connection } from "./connection.ts";
import { isDamage, isDiskFault, StoreFault } from "./fault.ts";
import { lockToLook } from "./lock.ts";
import { missingMigrations } from "./migrate.ts";
import { loadAddon } from "./native.ts";
import { LOCK_FILE } from "./open.ts";

interface Finding {
  readonly check: string;
  readonly result: "ok" | "warning" | "damaged";
  /** A sentence for a person. */
  readonly detail: string;
}

export interface Diagnosis {
  /** Unreadable: the disk does not let SQLite look. */
  readonly verdict: "sound" | "damaged" | "locked" | "unreadable";
  readonly findings: readonly Finding[];
}

/** What `errand doctor` exits with; 1 also where no data can be looked at, which a watchdog should not take for sound. */
export const EXIT_OF: Readonly<Record<Diagnosis["verdict"], number>> = {
  sound: 0,
  damaged: 1,
  locked: 2,
  unreadable: 1,
};

const LOW_DISK_BYTES = 256 * 1024 * 1024;
/** Times of the future up to here are the tolerance of clocks. */
const CLOCK_TOLERANCE_MS = 60_000;

/** `now` is the wall clock. Reads everything, so that a large file takes a while. */
export function doctor(folder: string, now: number): Diagnosis {
  const file = databaseOf(folder);
  const addon = loadAddon(join(folder, "native"));
  const lock = join(folder, LOCK_FILE);
  let unlock = () => {};
  try {
    // Without a lock file no service has ever run here; a look makes none.
    if (existsSync(lock)) unlock = lockToLook(lock, addon);
    const findings = [...examine(file, addon, now), space(folder, file)];
    const isDamaged = findings.some(({ result }) => result === "damaged");
    return { verdict: isDamaged ? "damaged" : "sound", findings };
  } catch (error) {
    if (isDiskFault(error)) {
      const detail = `the disk does not let the file be read (${error.message}); SQLite has to write a little beside it`;
      const findings: Finding[] = [{ check: "file", result: "warning", detail }, space(folder, file)];
      return { verdict: "unreadable", findings };
    }
    if (!(error instanceof StoreFault)) throw error;
    const isLocked = error.kind === "locked";
    const finding: Finding = isLocked
      ? { check: "lock", result: "warning", detail: error.message }
      : { check: "file", result: "damaged", detail: error.message };
    return { verdict: isLocked ? "locked" : "damaged", findings: [finding] };
  } finally {
    unlock();
  }
}

function examine(file: string, addon: string, now: number): Finding[] {
  const missing = missingMigrations(file, addon);
  const db: Connection = new Database(file, { readonly: true, nativeBinding: addon });
  try {
    const integrity = list("integrity", faultsOf(db), "the file is whole");
    if (integrity.result === "damaged") return [integrity];
    const schema: Finding =
      missing.length === 0
        ? { check: "schema", result: "ok", detail: "the schema is that of this version" }
        : {
            check: "schema",
            result: "warning",
            detail: `the next start brings the schema up to date (${missing.map(({ name }) => name).join(", ")})`,
          };
    if (missing.length > 0) return [integrity, schema];
    return [
      integrity,
      schema,
      parents(db),
      claims(db),
      counts(db),
      schedules(db, now),
      times(db, now),
      held(db),
    ];
  } catch (error) {
    if (!isDamage(error)) throw error;
    return [{ check: "integrity", result: "damaged", detail: error.message }];
  } finally {
    db.close();
  }
}

function parents(db: Connection): Finding {
  const rows = db.pragma("foreign_key_check") as { table: string; parent: string }[];
  const faults = rows.map(({ table, parent }) => `a row of ${table} has lost its ${parent}`);
  return list("references", faults, "every row has what it belongs to");
}

/** Without a service an active job is what a crash left; the next start sends it again. */
function claims(db: Connection): Finding {
  const count = number(db, "SELECT count(*) FROM jobs WHERE status = 'active'");
  if (count === 0) return { check: "claims", result: "ok", detail: "no attempt was cut short" };
  const detail = `${count} attempts were cut short by the end of the service; the next start sends those jobs again`;
  return { check: "claims", result: "warning", detail };
}

function counts(db: Connection): Finding {
  const wrong = db
    .prepare<[], string>(
      `SELECT name || ': ' || status FROM (
         SELECT queue, status, count FROM queue_counts WHERE count <> 0
         EXCEPT SELECT queue, status, count(*) FROM jobs WHERE callback_of IS NULL GROUP BY queue, status
       ) JOIN queues ON queues.id = queue`,
    )
    .pluck()
    .all()
    .map((what) => `the count of a queue is not what it holds (${what})`);
  return list("counts", wrong, "the counts of the queues are right");
}

function schedules(db: Connection, now: number): Finding {
  const lost = db
    .prepare<[number], string>(
      "SELECT id FROM schedules WHERE paused = 0 AND next_run_at IS NULL AND (ends_at IS NULL OR ends_at > ?)",
    )
    .pluck()
    .all(now);
  if (lost.length === 0)
    return { check: "schedules", result: "ok", detail: "every schedule that should run has a next run" };
  const detail = `${lost.length} schedules have no next run (${lost.slice(0, 3).join(", ")}); the service gives them one if there is one`;
  return { check: "schedules", result: "warning", detail };
}

function times(db: Connection, now: number): Finding {
  const newest = number(
    db,
    "SELECT max(coalesce((SELECT max(updated_at) FROM jobs), 0), coalesce((SELECT max(updated_at) FROM schedules), 0))",
  );
  const aheadMs = newest - now;
  if (aheadMs <= CLOCK_TOLERANCE_MS)
    return { check: "clock", result: "ok", detail: "nothing was written in the future" };
  const detail = `something was written ${describeDuration(aheadMs)} in the future: the clock of this machine is wrong, or was`;
  return { check: "clock", result: "warning", detail };
}

function held(db: Connection): Finding {
  const isHeld = db.prepare<[], string>("SELECT value FROM facts WHERE name = 'held'").pluck().get() === "1";
  if (!isHeld) return { check: "hold", result: "ok", detail: "dispatch and cron are not held" };
  const detail = "dispatch and cron are held since a restore; `errand resume` starts them";
  return { check: "hold", result: "warning", detail };
}

function space(folder: string, file: string): Finding {
  const { bavail, bsize } = statfsSync(folder);
  const freeBytes = bavail * bsize;
  const neededBytes = Math.max(LOW_DISK_BYTES, statSync(file).size);
  const free = `${Math.floor(freeBytes / 1024 / 1024)} MiB are free`;
  if (freeBytes >= neededBytes) return { check: "space", result: "ok", detail: free };
  const detail = `only ${free}; a copy before an upgrade alone may need ${Math.ceil(neededBytes / 1024 / 1024)} MiB`;
  return { check: "space", result: "warning", detail };
}

/** One finding of what may be many faults: the first of them, and how many more. */
function list(check: string, faults: readonly string[], fine: string): Finding {
  const [first] = faults;
  if (first === undefined) return { check, result: "ok", detail: fine };
  const more = faults.length === 1 ? "" : ` (and ${faults.length - 1} more)`;
  return { check, result: "damaged", detail: first + more };
}

function number(db: Connection, sql: string): number {
  return Number(db.prepare(sql).pluck().get());
}
