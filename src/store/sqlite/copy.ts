/** A consistent copy of a database as one file: whole or not there at all, and readable by its owner only. */
import { closeSync, fsyncSync, openSync, renameSync, rmSync } from "node:fs";
import { dirname } from "node:path";
import type { Connection } from "./connection.ts";
import { syncFolder } from "./durability.ts";
import { isDiskFault, StoreFault } from "./fault.ts";

/**
 * Copies everything that was committed before the call, by whichever process. Readers and writers go on meanwhile, but
 * this connection, and so its thread, is busy. Takes the place of a file that is there.
 */
export function copyDatabase(db: Connection, file: string): void {
  const unfinished = `${file}.unfinished`;
  // Made before SQLite opens it, since SQLite would let others read it; VACUUM INTO takes an empty file. And made anew: in
  // a folder of everybody's, a file or a link that somebody put there would be given all of the data, or overwritten.
  rmSync(unfinished, { force: true });
  closeSync(openSync(unfinished, "wx", 0o600));
  try {
    db.prepare("VACUUM INTO ?").run(unfinished);
    const fd = openSync(unfinished, "r");
    try {
      fsyncSync(fd);
    } finally {
      closeSync(fd);
    }
    renameSync(unfinished, file);
  } catch (error) {
    rmSync(unfinished, { force: true });
    if (!isDiskFault(error)) throw error;
    throw new StoreFault(
      "refused",
      `the copy ${file} could not be written (${error.message}): free some space`,
    );
  }
  syncFolder(dirname(file));
}
