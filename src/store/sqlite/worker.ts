/** The store's second thread: what takes long or holds a lock, on a connection of its own. */
import { parentPort, workerData } from "node:worker_threads";
import Database from "better-sqlite3";
import { isDamage } from "./fault.ts";
import { LOST_PART, rewriteLog } from "./log.ts";

export interface WorkerRequest {
  readonly id: number;
  readonly task: "checkpoint" | "restart" | "rewrite" | "close";
}

export interface WorkerReply {
  readonly id: number;
  readonly error: string | null;
  /** SQLite's name for the error, where it is one of its own. */
  readonly code?: string | undefined;
  /** For the checkpoints: frames in the log, and how many of them are in the file now. */
  readonly frames: number;
  readonly copied: number;
}

const { file, addon } = workerData as { file: string; addon: string };
/** Writers are held while the log is begun afresh, so it must not wait for a reader in another process: the next try will do. */
const BUSY_TIMEOUT_MS = 10;

const db = new Database(file, { nativeBinding: addon, timeout: BUSY_TIMEOUT_MS });

type Mode = "PASSIVE" | "TRUNCATE" | "NOOP";
/** Each prepared once: V8 lets go of one only when this thread's old objects fill megabytes, which takes it hours. */
const checkpoints = new Map<Mode, Database.Statement<[], { log: number; checkpointed: number }>>();
let isSetUp = false;

/**
 * https://sqlite.org/pragma.html#pragma_wal_checkpoint: PASSIVE waits for nobody, TRUNCATE starts the log afresh, NOOP
 * copies nothing and tells how long the log is.
 */
function checkpoint(mode: Mode) {
  // Not when the thread starts: where the log has lost a page these fail, and that is then the answer.
  if (!isSetUp) {
    db.pragma("synchronous = NORMAL");
    db.pragma("wal_autocheckpoint = 0");
    isSetUp = true;
  }
  const statement = checkpoints.get(mode) ?? db.prepare(`PRAGMA wal_checkpoint(${mode})`);
  checkpoints.set(mode, statement);
  const result = statement.get();
  return { frames: result?.log ?? 0, copied: result?.checkpointed ?? 0 };
}

/**
 * With the writer's lock held, so that no process appends to the log or begins it afresh meanwhile. One that did so just
 * before, where the log's length cannot be asked for under the lock, makes this fail or has synced what it added.
 */
function rewrite() {
  try {
    const log = checkpoint("NOOP");
    db.exec("BEGIN IMMEDIATE");
    if (log.frames > 0) rewriteLog(`${file}-wal`, log.frames);
    return log;
  } catch (error) {
    // What SQLite itself reads first, the first page and the schema, was lost.
    throw isDamage(error) ? new Error(LOST_PART, { cause: error }) : error;
  } finally {
    if (db.inTransaction) db.exec("ROLLBACK");
  }
}

function perform(request: WorkerRequest): { frames: number; copied: number } {
  switch (request.task) {
    case "checkpoint":
      return checkpoint("PASSIVE");
    case "restart":
      return checkpoint("TRUNCATE");
    case "rewrite":
      return rewrite();
    case "close":
      db.close();
      return { frames: 0, copied: 0 };
  }
}

parentPort?.on("message", (request: WorkerRequest) => {
  let reply: WorkerReply;
  try {
    reply = { id: request.id, error: null, ...perform(request) };
  } catch (error) {
    reply = {
      id: request.id,
      error: error instanceof Error ? error.message : String(error),
      code: error instanceof Error && "code" in error ? String(error.code) : undefined,
      frames: 0,
      copied: 0,
    };
  }
  parentPort?.postMessage(reply);
  if (request.task === "close") parentPort?.close();
});
