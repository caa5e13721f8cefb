/** Opens the store on a data folder: lock, connection, schema, and the commands put together. */
import { chmodSync, closeSync, existsSync, openSync } from "node:fs";
import { dirname, join } from "node:path";
import { drizzle } from "drizzle-orm/better-sqlite3";
import type { Clock } from "../../base/clock.ts";
import { makeFolder } from "../../base/folder.ts";
import type { SecretBox } from "../../base/secret-box.ts";
import type { Store } from "../store.ts";
import { accountCommands } from "./accounts.ts";
import { callbackWriter } from "./callback.ts";
import { Checkpointer } from "./checkpoint.ts";
import { claimCommands } from "./claims.ts";
import { BUSY_TIMEOUT_MS, type Connection, closeWithoutCheckpoint, connect } from "./connection.ts";
import { Directory } from "./directory.ts";
import { Durability } from "./durability.ts";
import { StoreFault, told } from "./fault.ts";
import { jobInserter } from "./insert.ts";
import { jobCommands } from "./jobs.ts";
import { lockFolder } from "./lock.ts";
import { maintenanceCommands } from "./maintenance.ts";
import { migrate, missingMigrations } from "./migrate.ts";
import { loadAddon } from "./native.ts";
import { onceWriter } from "./once.ts";
import { QueueStarts } from "./queue-starts.ts";
import { queueCommands } from "./queues.ts";
import { JobReader } from "./read.ts";
import { Recovery } from "./recovery.ts";
import { Rows } from "./rows.ts";
import { scheduleCommands } from "./schedules.ts";
import { StoreThread } from "./thread.ts";
import { transitionWriter } from "./transition.ts";
import { Writer } from "./writer.ts";

export interface StoreOptions {
  /** The data folder; made when it is not there. */
  readonly folder: string;
  /** As a function it is called with the lock held: of two first starts at once only one makes the key. */
  readonly box: SecretBox | (() => SecretBox);
  readonly clock: Clock;
  /** False for `errand accounts`, which works beside a running service: it takes no lock and leaves the log to the service. */
  readonly exclusive?: boolean;
  /** Told how long each sync of the log took, in milliseconds. */
  readonly onSync?: (durationMs: number) => void;
  /** Told of work in the background that failed and will be tried again. */
  readonly onFailure?: (what: string, error: unknown) => void;
}

export const DATABASE_FILE = "errand.db";
export const LOCK_FILE = "lock";

export function openStore({
  folder,
  box: boxOrMake,
  clock,
  onSync,
  onFailure = () => {},
  exclusive = true,
}: StoreOptions): Store {
  makeFolder(folder);
  const file = join(folder, DATABASE_FILE);
  const addon = loadAddon(join(folder, "native"));
  const unlock = exclusive ? lockFolder(join(folder, LOCK_FILE), addon) : () => {};
  let opened: Connection | null = null;
  try {
    const box = typeof boxOrMake === "function" ? boxOrMake() : boxOrMake;
    makePrivate(file);
    const db = exclusive ? openAlone(file, addon, clock) : openBeside(file, addon, clock);
    opened = db;
    checkKey(db, box, folder);

    const orm = drizzle({ client: db });
    const directory = new Directory(db);
    const durability = new Durability(`${file}-wal`, folder, clock, onSync);
    const starts = new QueueStarts(db);
    const writer = new Writer(db, durability, () => {
      directory.forget();
      starts.forget();
    });
    const rows = new Rows(directory, box);
    const reader = new JobReader(db, directory, rows);
    const insert = jobInserter(db, directory, rows);
    const once = onceWriter(db, box);
    const transition = transitionWriter(db, directory, reader);
    const callback = callbackWriter(reader, insert);
    const thread = new StoreThread(file, addon);
    const recovery = new Recovery({ db, writer, durability, thread, clock, onFailure });
    const checkpointer = exclusive
      ? new Checkpointer(durability.fd, writer, thread, (error) => onFailure("checkpoint", error))
      : null;
    const parts = {
      db,
      orm,
      writer,
      directory,
      rows,
      reader,
      insert,
      once,
      transition,
      callback,
      starts,
      box,
      clock,
      file,
      checkpoint: async () => checkpointer?.run(),
    };

    return {
      jobs: jobCommands(parts),
      engine: claimCommands(parts),
      schedules: scheduleCommands(parts),
      queues: queueCommands(parts),
      accounts: accountCommands(parts),
      maintenance: maintenanceCommands(parts),
      subscribe: (listener) => writer.subscribe(listener),
      trouble: () => writer.trouble?.reason ?? null,
      judged: (error) => writer.judgeRead(error),
      async close() {
        await writer.close();
        await recovery.close();
        await checkpointer?.close();
        await thread.close();
        await durability.close();
        // In trouble the log may not be what was written: the next start reads it up to the first fault.
        if (writer.trouble === null) db.close();
        else closeWithoutCheckpoint(db, file, addon);
        unlock();
      },
    };
  } catch (error) {
    opened?.close();
    unlock();
    throw told(error, file);
  }
}

/** The file is made before SQLite does, so that it and its log are never readable by others. */
function makePrivate(file: string): void {
  if (!existsSync(file)) closeSync(openSync(file, "a", 0o600));
  try {
    chmodSync(file, 0o600);
  } catch (error) {
    if (!(error instanceof Error && "code" in error && error.code === "EPERM")) throw error;
    throw new StoreFault("refused", `${file} belongs to another user: chown it to the one that runs Errand`);
  }
}

/** With the lock held: nobody else has the file open, so its schema may change. */
function openAlone(file: string, addon: string, clock: Clock): Connection {
  const missing = missingMigrations(file, addon);
  const db = connect(file, addon, BUSY_TIMEOUT_MS.service);
  migrate(db, missing, (name) => join(dirname(file), `${name}.db`), clock.now());
  return db;
}

/** Beside a service that may be running: its schema is left alone, and made only where there is no service. */
function openBeside(file: string, addon: string, clock: Clock): Connection {
  if (missingMigrations(file, addon).length === 0) return connect(file, addon, BUSY_TIMEOUT_MS.beside);
  const unlock = lockFolder(join(dirname(file), LOCK_FILE), addon);
  try {
    return openAlone(file, addon, clock);
  } finally {
    unlock();
  }
}

/** Secrets sealed with another key could never be opened: better said now than at each delivery. */
function checkKey(db: Connection, box: SecretBox, folder: string): void {
  const known = db.prepare<[], string>("SELECT value FROM facts WHERE name = 'key_check'").pluck().get();
  if (known === undefined) {
    db.prepare("INSERT OR IGNORE INTO facts (name, value) VALUES ('key_check', ?)").run(box.seal("errand"));
    return;
  }
  try {
    box.open(known);
  } catch {
    throw new StoreFault(
      "refused",
      `the secrets in ${folder} were sealed with another secret key; start with the one they were made with (ERRAND_SECRET_KEY, or the file secret-key)`,
    );
  }
}
