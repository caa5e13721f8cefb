/** Brings a database file to the schema of this version: forward only, one transaction, after a copy of the file. */
import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import type { Connection } from "./connection.ts";
import { MIGRATIONS } from "./migrations.ts";

export class SchemaFault extends Error {}

interface LedgerRow {
  name: string;
  sha256: string;
}

/**
 * Runs the migrations that the file does not have yet. Throws a {@link SchemaFault} with one sentence, and leaves the file
 * alone, when the file is of a newer version or its history is not ours. Foreign keys are off outside the transaction,
 * since SQLite ignores that switch inside one and a rebuilt table would take its children with it.
 */
export function migrate(db: Connection, copyTo: (name: string) => string, now: number): void {
  const isNew = db.prepare("SELECT count(*) AS count FROM sqlite_master").pluck().get() === 0;
  const ledger = isNew ? [] : readLedger(db);
  checkHistory(ledger);
  const missing = MIGRATIONS.slice(ledger.length);
  if (missing.length === 0) return;
  if (!isNew) copy(db, copyTo(`before-${missing[0]!.name}`));

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
      throw new SchemaFault(`the migration would leave ${broken.length} rows without their parent`);
    db.exec("COMMIT");
  } catch (error) {
    if (db.inTransaction) db.exec("ROLLBACK");
    throw error;
  } finally {
    db.pragma("foreign_keys = ON");
  }
}

function readLedger(db: Connection): LedgerRow[] {
  const known = db.prepare("SELECT 1 FROM sqlite_master WHERE name = 'migrations'").get();
  if (known === undefined) throw new SchemaFault("the file is an SQLite database, but not one of Errand's");
  return db.prepare<[], LedgerRow>("SELECT name, sha256 FROM migrations ORDER BY name").all();
}

function checkHistory(ledger: readonly LedgerRow[]): void {
  const newest = ledger.at(-1);
  if (newest !== undefined && ledger.length > MIGRATIONS.length) {
    throw new SchemaFault(
      `the file has the schema of a newer Errand (${newest.name}); start that version or restore an older backup`,
    );
  }
  ledger.forEach((row, i) => {
    const ours = MIGRATIONS[i];
    if (ours === undefined || ours.name !== row.name || sha256(ours.sql) !== row.sha256) {
      throw new SchemaFault(`the file's schema history differs from this version at ${row.name}`);
    }
  });
}

/** A copy that can be put back by hand; one that is there already is from an attempt that did not end, and as good. */
function copy(db: Connection, file: string): void {
  if (!existsSync(file)) db.prepare("VACUUM INTO ?").run(file);
}

function sha256(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}
