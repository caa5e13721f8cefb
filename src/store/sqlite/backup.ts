/** `errand backup`, `errand restore`, `errand resume`: on the data folder itself, beside a service or without one. */
import { chownSync, existsSync, linkSync, renameSync, rmSync, statSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import Database from "better-sqlite3";
import { makeFolder } from "../../base/folder.ts";
import { BUSY_TIMEOUT_MS, type Connection } from "./connection.ts";
import { copyDatabase } from "./copy.ts";
import { syncFolder } from "./durability.ts";
import { isDamage, StoreFault, told } from "./fault.ts";
import { lockFolder } from "./lock.ts";
import { missingMigrations } from "./migrate.ts";
import { MIGRATIONS } from "./migrations.ts";
import { loadAddon } from "./native.ts";
import { DATABASE_FILE, LOCK_FILE } from "./open.ts";

/** Where a restore leaves what it replaces. */
const REPLACED_FILE = "before-restore.db";

/** What to do about a backup that is no good. */
const ANOTHER = "the data is as it was: restore another backup";

/**
 * Copies the data of a folder into a new file, while a service runs on it or not. Inside is every job that was
 * acknowledged before the call. Answers the size in bytes. What is sealed in it opens only with the secret key.
 */
export function backup(folder: string, target: string): number {
  const file = databaseOf(folder);
  if (existsSync(target)) throw new StoreFault("refused", `${target} is there already; name a new file`);
  if (!existsSync(dirname(resolve(target))))
    throw new StoreFault("refused", `there is no folder ${dirname(target)}`);
  withConnection(file, { readonly: true }, (db) => copyDatabase(db, resolve(target)));
  return statSync(target).size;
}

/**
 * Puts a backup in the place of a folder's data. Nothing is sent after that until {@link resume}, so that what was done
 * since the backup is not done twice unasked. What was there is kept beside it. Refused while a service runs there.
 */
export function restore(folder: string, source: string): void {
  if (!existsSync(source)) throw new StoreFault("refused", `there is no file ${source}`);
  const addon = loadAddon(join(folder, "native"));
  makeFolder(folder);
  const unlock = lockFolder(join(folder, LOCK_FILE), addon);
  const file = join(folder, DATABASE_FILE);
  const fresh = `${file}.restoring`;
  try {
    if (missingMigrations(source, addon, ANOTHER).length === MIGRATIONS.length)
      throw new StoreFault("refused", `${source} is empty; ${ANOTHER}`);
    withConnection(source, { readonly: true }, (db) => {
      refuseUnlessWhole(db, source);
      copyDatabase(db, fresh);
    });
    withConnection(fresh, {}, (db) => setHeld(db, true));
    giveToOwnerOf(folder, fresh);
    if (existsSync(file)) foldLog(file);
    replace(file, fresh, join(folder, REPLACED_FILE));
  } finally {
    rmSync(fresh, { force: true });
    unlock();
  }
}

/** Lets a restored folder's service send again; a running one notices within about a second. False when it was not held. */
export function resume(folder: string): boolean {
  const file = databaseOf(folder);
  missingMigrations(file, loadAddon(join(folder, "native")));
  return withConnection(file, {}, (db) => setHeld(db, false));
}

/** Runs `work` on a connection that syncs by itself and leaves the log to the service. */
function withConnection<T>(file: string, options: { readonly?: true }, work: (db: Connection) => T): T {
  const addon = loadAddon(join(dirname(file), "native"));
  const db: Connection = new Database(file, {
    ...options,
    fileMustExist: true,
    nativeBinding: addon,
    timeout: BUSY_TIMEOUT_MS.beside,
  });
  try {
    db.pragma("synchronous = FULL");
    return work(db);
  } catch (error) {
    throw told(error, file);
  } finally {
    db.close();
  }
}

export function databaseOf(folder: string): string {
  const file = join(folder, DATABASE_FILE);
  if (!existsSync(file)) {
    throw new StoreFault(
      "refused",
      `there is no Errand data in ${folder}: name its folder with --data-dir or ERRAND_DATA_DIR`,
    );
  }
  return file;
}

/** An administrator restores for the user that the service runs as, who could not open a file of root's. */
function giveToOwnerOf(folder: string, file: string): void {
  const { uid, gid } = statSync(folder);
  if (process.getuid?.() === 0) chownSync(file, uid, gid);
}

function refuseUnlessWhole(db: Connection, source: string): void {
  const faults = faultsOf(db);
  if (faults.length > 0) throw new StoreFault("damaged", `${source} is damaged (${faults[0]}); ${ANOTHER}`);
}

/** What `PRAGMA integrity_check` finds wrong; empty for a file that is whole. */
export function faultsOf(db: Connection): readonly string[] {
  try {
    const lines = db.prepare<[], string>("PRAGMA integrity_check").pluck().all();
    return lines.filter((line) => line !== "ok").flatMap((line) => line.split("\n"));
  } catch (error) {
    if (isDamage(error)) return [error.message];
    throw error;
  }
}

function setHeld(db: Connection, held: boolean): boolean {
  const before = db.prepare<[], string>("SELECT value FROM facts WHERE name = 'held'").pluck().get() === "1";
  if (before !== held)
    db.prepare("INSERT OR REPLACE INTO facts (name, value) VALUES ('held', ?)").run(held ? "1" : "0");
  return before;
}

/**
 * Copies a log that a crash left into its file, so that the file alone is all of the data: a restore that is killed before
 * the last rename leaves it as it was. What is damaged keeps its log as it is.
 */
function foldLog(file: string): void {
  try {
    withConnection(file, {}, (db) => db.pragma("wal_checkpoint(TRUNCATE)"));
  } catch (error) {
    if (!isDamage(error)) throw error;
  }
}

/** A log goes with the file it belongs to: beside another one, SQLite would take it for that one's. */
function replace(file: string, fresh: string, replaced: string): void {
  for (const suffix of ["", "-wal", "-shm"]) rmSync(replaced + suffix, { force: true });
  if (existsSync(file)) linkSync(file, replaced);
  if (existsSync(`${file}-wal`)) renameSync(`${file}-wal`, `${replaced}-wal`);
  rmSync(`${file}-shm`, { force: true });
  renameSync(fresh, file);
  syncFolder(dirname(file));
}
