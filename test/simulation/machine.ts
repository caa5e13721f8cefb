/**
 * The machine under the store, made to follow the seed: syncs and the store's second thread take turns of the event loop
 * instead of real time, writes and syncs fail when the simulation says so, and what a power cut leaves of a log is known.
 */
import { EventEmitter } from "node:events";
import fs from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import workerThreads from "node:worker_threads";
import Database from "better-sqlite3";
import type { WorkerReply, WorkerRequest } from "../../src/store/sqlite/worker.ts";

type WriteFault = "SQLITE_FULL" | "SQLITE_IOERR_WRITE" | "SQLITE_BUSY";

class Disk {
  /** How many of the coming write statements go well before they begin to fail; null while the disk is sound. */
  private soundWrites: number | null = null;
  private failingWrites = 0;
  private code: WriteFault = "SQLITE_FULL";
  private failingSyncs = 0;
  /** Bytes of each log that are on the disk for certain, by its descriptor. */
  private readonly synced = new Map<number, number>();
  /** Logs whose pages a failed sync lost: no later sync brings them back (https://lwn.net/Articles/752063/). */
  private readonly torn = new Set<number>();
  /** Logs that began afresh: their length says nothing. */
  private readonly unknown = new Set<number>();
  /** Faults since the simulation began: only after one may the store refuse work. */
  faults = 0;

  reset(): void {
    this.heal();
    this.faults = 0;
    this.synced.clear();
    this.torn.clear();
    this.unknown.clear();
  }

  heal(): void {
    this.soundWrites = null;
    this.failingSyncs = 0;
  }

  failWrites(after: number, count: number, code: WriteFault): void {
    this.soundWrites = after;
    this.failingWrites = count;
    this.code = code;
  }

  failSyncs(count: number): void {
    this.failingSyncs = count;
  }

  /** Called before each statement that writes. */
  write(sql: string): void {
    if (this.soundWrites === null || this.soundWrites-- > 0) return;
    if (--this.failingWrites <= 0) this.soundWrites = null;
    else this.soundWrites = 0;
    this.faults += 1;
    throw new Database.SqliteError(`simulated fault in ${sql.slice(0, 20)}`, this.code);
  }

  sync(fd: number, done: (error: Error | null) => void): void {
    const size = fs.fstatSync(fd).size;
    setImmediate(() => {
      if (this.failingSyncs > 0) {
        this.failingSyncs -= 1;
        this.faults += 1;
        this.torn.add(fd);
        done(Object.assign(new Error("EIO: i/o error, fdatasync"), { code: "EIO" }));
        return;
      }
      if (!this.torn.has(fd)) this.synced.set(fd, size);
      done(null);
    });
  }

  /** A store opened a log of which so many bytes outlast a power cut; null when that is not known. */
  trust(fd: number, certain: number | null): void {
    this.synced.set(fd, certain ?? 0);
    this.torn.delete(fd);
    if (certain === null) this.unknown.add(fd);
    else this.unknown.delete(fd);
  }

  /** How much of the newest log a power cut leaves at least; null when that cannot be told. */
  certain(fd: number): number | null {
    return this.unknown.has(fd) ? null : (this.synced.get(fd) ?? 0);
  }

  restarted(): void {
    for (const fd of this.synced.keys()) this.unknown.add(fd);
  }
}

export const disk = new Disk();

/** The log of the store that was opened last. */
export let newestLog = -1;

/** Does the tasks of worker.ts in this thread, a turn later. */
class InertWorker extends EventEmitter {
  private readonly db: Database.Database;

  constructor(_file: unknown, { workerData }: { workerData: { file: string; addon: string } }) {
    super();
    this.db = new Database(workerData.file, { nativeBinding: workerData.addon, timeout: 0 });
    this.db.pragma("wal_autocheckpoint = 0");
  }

  postMessage({ id, task }: WorkerRequest): void {
    setImmediate(() => {
      const reply: WorkerReply = { id, error: null, frames: 0, copied: 0 };
      if (task === "close") this.db.close();
      else if (task === "checkpoint" || task === "restart") {
        const mode = task === "checkpoint" ? "PASSIVE" : "TRUNCATE";
        const [result] = this.db.pragma(`wal_checkpoint(${mode})`) as { log: number; checkpointed: number }[];
        disk.restarted();
        Object.assign(reply, { frames: result?.log ?? 0, copied: result?.checkpointed ?? 0 });
      }
      this.emit("message", reply);
    });
  }

  ref(): void {}
  unref(): void {}
  terminate(): Promise<number> {
    return Promise.resolve(0);
  }
}

let installed = false;

/** Takes the place of what reaches the real machine, for this process and for good. */
export function installMachine(): void {
  if (installed) return;
  installed = true;
  const openFile = fs.openSync;
  Object.assign(fs, {
    fdatasync: (fd: number, done: (error: Error | null) => void) => disk.sync(fd, done),
    openSync: (path: fs.PathLike, flags: fs.OpenMode, mode?: fs.Mode) => {
      const fd = openFile(path, flags, mode);
      if (String(path).endsWith("-wal")) newestLog = fd;
      return fd;
    },
  });
  Object.assign(workerThreads, { Worker: InertWorker });
  syncBuiltinESMExports();

  const original = { ...Database.prototype };
  Database.prototype.prepare = function (this: Database.Database, sql: string) {
    const statement = original.prepare.call(this, sql);
    if (/^\s*(INSERT|UPDATE|DELETE|COMMIT|BEGIN)/i.test(sql)) {
      const run = statement.run.bind(statement) as (...parameters: unknown[]) => Database.RunResult;
      statement.run = (...parameters: unknown[]) => {
        disk.write(sql);
        return run(...parameters);
      };
    }
    return statement;
  } as Database.Database["prepare"];
}
