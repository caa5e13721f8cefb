/** One connection to the database file, with the settings that every promise of the store leans on. */
import Database from "better-sqlite3";

export type Connection = Database.Database;

/** Milliseconds that a statement waits for a lock of another process (`errand accounts` beside a running service). */
const BUSY_TIMEOUT_MS = 5_000;
const CACHE_KIB = 32 * 1024;

/** `addon` is the compiled half of better-sqlite3: see native.ts. */
export function connect(file: string, addon: string, readonly = false): Connection {
  const db = new Database(file, { readonly, timeout: BUSY_TIMEOUT_MS, nativeBinding: addon });
  if (!db.readonly) {
    // Takes effect in a new file only: lets retention give space back in small steps.
    db.pragma("auto_vacuum = INCREMENTAL");
    db.pragma("journal_mode = WAL");
  }
  // Commits do not wait for the disk; durability.ts syncs the log before anything is acknowledged.
  db.pragma("synchronous = NORMAL");
  // Copying the log into the file is the work of checkpoint.ts, on a thread of its own.
  db.pragma("wal_autocheckpoint = 0");
  db.pragma("foreign_keys = ON");
  db.pragma("temp_store = MEMORY");
  db.pragma(`cache_size = -${CACHE_KIB}`);
  return db;
}
