/** One connection to the database file, with the settings that every promise of the store leans on. */
import Database from "better-sqlite3";

export type Connection = Database.Database;

/**
 * Milliseconds that a statement waits for a lock of another process. Beside a running service there is time; the service
 * itself stands still meanwhile, and those who hold the lock (`errand accounts`, `errand resume`) do so for a moment.
 */
export const BUSY_TIMEOUT_MS = { service: 1_000, beside: 5_000 };
const CACHE_KIB = 32 * 1024;

/** `addon` is the compiled half of better-sqlite3: see native.ts. */
export function connect(file: string, addon: string, busyTimeoutMs: number): Connection {
  const db = new Database(file, { timeout: busyTimeoutMs, nativeBinding: addon });
  // Takes effect in a new file only: lets retention give space back in small steps.
  db.pragma("auto_vacuum = INCREMENTAL");
  db.pragma("journal_mode = WAL");
  // Commits do not wait for the disk; durability.ts syncs the log before anything is acknowledged.
  db.pragma("synchronous = NORMAL");
  // Copying the log into the file is the work of checkpoint.ts, on a thread of its own.
  db.pragma("wal_autocheckpoint = 0");
  db.pragma("foreign_keys = ON");
  db.pragma("temp_store = MEMORY");
  db.pragma(`cache_size = -${CACHE_KIB}`);
  return db;
}
