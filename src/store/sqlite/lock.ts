/** One service per data folder: a lock that a kill -9 lets go of, since the kernel holds it and not a file's presence. */
import { closeSync, openSync } from "node:fs";
import { dirname } from "node:path";
import Database from "better-sqlite3";
import type { Connection } from "./connection.ts";
import { StoreFault } from "./fault.ts";

/**
 * How long the lock is waited for. SQLite takes an exclusive lock in steps, so of two that start at the same moment each
 * may meet a step of the other: refused at once, neither would run.
 */
const PATIENCE_MS = 250;

/** Takes the lock or throws a {@link StoreFault}. The answer lets it go. */
export function lockFolder(file: string, addon: string): () => void {
  closeSync(openSync(file, "a", 0o600));
  return hold(file, { nativeBinding: addon }, (db) => {
    db.pragma("journal_mode = MEMORY");
    // An exclusive transaction is a POSIX lock on the file; it is never committed and nothing is ever written.
    db.exec("BEGIN EXCLUSIVE");
  });
}

/** The same for one who only looks, on a disk that takes no writes, too. Several may look at once; none starts meanwhile. */
export function lockToLook(file: string, addon: string): () => void {
  return hold(file, { nativeBinding: addon, readonly: true }, (db) => {
    db.exec("BEGIN; SELECT name FROM sqlite_schema");
  });
}

function hold(file: string, options: Database.Options, take: (db: Connection) => void): () => void {
  const db: Connection = new Database(file, { ...options, timeout: PATIENCE_MS });
  try {
    take(db);
  } catch (error) {
    db.close();
    if (error instanceof Error && "code" in error && String(error.code).startsWith("SQLITE_BUSY")) {
      throw new StoreFault(
        "locked",
        `another Errand is running on the data folder ${dirname(file)}: stop it first, or name another folder with --data-dir or ERRAND_DATA_DIR`,
      );
    }
    throw error;
  }
  return () => db.close();
}
