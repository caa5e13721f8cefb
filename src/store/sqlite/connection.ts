/** One connection to the database file, with the settings that every promise of the store leans on. */
import Database from "better-sqlite3";
import { isDamage } from "./fault.ts";

export type Connection = Database.Database;

/**
 * Milliseconds that a statement waits for a lock of another process. Beside a running service there is time; the service
 * itself stands still meanwhile, and those who hold the lock (`errand accounts`, `errand resume`) do so for a moment.
 */
export const BUSY_TIMEOUT_MS = { service: 1_000, beside: 5_000 };
const CACHE_KIB = 8 * 1024;

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

/**
 * Closes the last connection and leaves the log as it is. SQLite copies the log into the file when the last one is
 * closed, and reads nothing of it first; SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, which forbids that, is out of reach here. But
 * a connection that may only read never does it, so one of those is made the last.
 */
export function closeWithoutCheckpoint(db: Connection, file: string, addon: string): void {
  const last: Connection = new Database(file, { readonly: true, nativeBinding: addon });
  try {
    // It counts from its first read on. A page that is wrong changes nothing about that.
    last.pragma("data_version");
  } catch (error) {
    if (!isDamage(error)) throw error;
  }
  db.close();
  last.close();
}
