/** Brings a database file to the schema of this version: forward only, one transaction, after a copy of the file. */
import { createHash } from "node:crypto";
import Database from "better-sqlite3";
import type { Connection } from "./connection.ts";
import { copyDatabase } from "./copy.ts";
import { isDamage, StoreFault } from "./fault.ts";
import { MIGRATIONS } from "./migrations.ts";

interface LedgerRow {
  name: string;
  sha256: string;
}

type Migration = (typeof MIGRATIONS)[number];

/**
 * The migrations that a file does not have yet. Throws a {@link StoreFault} when the file is damaged, not one of Errand's,
 * of a newer version, or its history is not ours. Reads only: a file that is refused stays as it was, byte for byte.
 * `ifDamaged` says what to do about a damaged one.
 */
export function missingMigrations(
  file: string,
  addon: string,
  ifDamaged = "`errand restore` puts a backup in its place",
): readonly Migration[] {
  try {
    const db: Connection = new Database(file, { readonly: true, nativeBinding: addon });
    try {
      return missingIn(db, file);
    } finally {
      db.close();
    }
  } catch (error) {
    if (!isDamage(error)) throw error;
    throw new StoreFault(
      "damaged",
      `${file} is damaged or not an SQLite database (${error.message}); ${ifDamaged}`,
    );
  }
}

function missingIn(db: Connection, file: string): readonly Migration[] {
  const names = db.prepare<[], string>("SELECT name FROM sqlite_master").pluck().all();
  if (names.length === 0) return MIGRATIONS;
  if (!names.includes("migrations")) {
    throw new StoreFault("refused", `${file} is an SQLite database, but not one of Errand's`);
  }
  const ledger = db.prepare<[], LedgerRow>("SELECT name, sha256 FROM migrations ORDER BY name").all();
  ledger.forEach((row, i) => {
    const ours = MIGRATIONS[i];
    if (ours === undefined) {
      throw new StoreFault(
        "refused",
        `${file} has the schema of a newer Errand (${row.name}); start that version or restore an older backup`,
      );
    }
    if (ours.name !== row.name || sha256(ours.sql) !== row.sha256) {
      throw new StoreFault(
        "refused",
        `the schema history of ${file} differs from this version at ${row.name}`,
      );
    }
  });
  return MIGRATIONS.slice(ledger.length);
}

/**
 * Runs what is missing. `copyTo` names the copy, to be put back by hand, that is made of a file with data in it; one of
 * an earlier try, after which the older version may have gone on, is replaced. Foreign keys are off outside the
 * transaction, since SQLite ignores that switch inside one and a rebuilt table would take its children with it.
 */
export function migrate(
  db: Connection,
  missing: readonly Migration[],
  copyTo: (name: string) => string,
  now: number,
): void {
  const [first] = missing;
  if (first === undefined) return;
  if (first !== MIGRATIONS[0]) copyDatabase(db, copyTo(`before-${first.name}`));

  db.pragma("foreign_keys = OFF");
  try {
    db.exec("BEGIN IMMEDIATE");
    db.exec(
      "CREATE TABLE IF NOT EXISTS migrations (name TEXT PRIMARY KEY, sha256 TEXT NOT NULL, applied_at INTEGER NOT NULL) STRICT",
    );
    for (const migration of missing) {
      db.exec(migration.sql);
      db.prepare("INSERT INTO migrations (name, sha256, applied_at) VALUES (?, ?, ?)").run(
        migration.name,
        sha256(migration.sql),
        now,
      );
    }
    const broken = db.pragma("foreign_key_check") as unknown[];
    if (broken.length > 0)
      throw new Error(`the migration would leave ${broken.length} rows without their parent`);
    db.exec("COMMIT");
    // Tables made anew leave free pages behind. In a new file they are few; of another one, retention gives them back.
    if (first === MIGRATIONS[0]) db.pragma("incremental_vacuum");
  } catch (error) {
    if (db.inTransaction) db.exec("ROLLBACK");
    throw error;
  } finally {
    db.pragma("foreign_keys = ON");
  }
}

function sha256(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}
