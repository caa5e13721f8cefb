/** Why a data folder cannot be used, as one sentence for the person who asked for it. */

/** locked: another process works on it. damaged: the file is not whole. refused: sound, but not for this program or key. */
export type FaultKind = "locked" | "damaged" | "refused";

/** Errors of SQLite that say that the disk, not the command, is at fault (https://sqlite.org/rescode.html). */
export const DISK_FAULTS = /^SQLITE_(FULL|IOERR|READONLY|CANTOPEN)/;

export class StoreFault extends Error {
  readonly kind: FaultKind;

  constructor(kind: FaultKind, message: string) {
    super(message);
    this.name = "StoreFault";
    this.kind = kind;
  }
}

/** SQLite's word that a file is not whole, or not a database at all (https://sqlite.org/rescode.html). */
export function isDamage(error: unknown): error is Error {
  return error instanceof Error && "code" in error && /^SQLITE_(CORRUPT|NOTADB)/.test(String(error.code));
}

/** SQLite could not use the disk, whatever stands on it: full, failing, or not to be written to. */
export function isDiskFault(error: unknown): error is Error {
  return error instanceof Error && "code" in error && DISK_FAULTS.test(String(error.code));
}

/** The same error as a sentence that names the file and the way out; any other error as it is. */
export function told(error: unknown, file: string): unknown {
  if (!isDiskFault(error)) return error;
  return new StoreFault(
    "refused",
    `the disk of ${file} is full or fails (${error.message}): free some space`,
  );
}

/** The disk failed, rather than that it is full or not to be written to. */
export function isIoError(error: unknown): error is Error {
  return error instanceof Error && "code" in error && String(error.code).startsWith("SQLITE_IOERR");
}
