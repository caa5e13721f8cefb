/** Makes commits durable without stopping the loop: one asynchronous fdatasync of the log for all that came before it. */
import { closeSync, fdatasync, fsyncSync, openSync } from "node:fs";
import type { Clock } from "../../base/clock.ts";

/**
 * SQLite appends commits to the `-wal` file (https://sqlite.org/walformat.html) and, with `synchronous = NORMAL`, syncs
 * it only before a checkpoint. A commit is durable as soon as an fdatasync of that file that began after it has ended.
 * At most one sync is under way; all commits made meanwhile share the next one, so that the group grows with the load.
 */
export class Durability {
  /** The log, open for as long as the store is. */
  readonly fd: number;
  private running: Promise<void> | null = null;
  private following: Promise<void> | null = null;
  /** Called when no sync is under way any more. */
  onSynced: () => void = () => {};
  private readonly clock: Clock;
  private readonly onSync: (durationMs: number) => void;

  /** `onSync` is told how long each sync took, in milliseconds. */
  constructor(
    walFile: string,
    folder: string,
    clock: Clock,
    onSync: (durationMs: number) => void = () => {},
  ) {
    this.clock = clock;
    this.onSync = onSync;
    this.fd = openSync(walFile, "r");
    syncFolder(folder);
  }

  get isSyncing(): boolean {
    return this.running !== null;
  }

  /** Resolves when every commit made before the call is on the disk; rejects when the disk did not say so. */
  sync(): Promise<void> {
    if (this.running === null) {
      this.running = this.run();
      return this.running;
    }
    // The sync under way may have begun before the caller's commit: only the next one covers it.
    this.following ??= this.running.then(
      () => this.follow(),
      () => this.follow(),
    );
    return this.following;
  }

  private follow(): Promise<void> {
    this.following = null;
    this.running = this.run();
    return this.running;
  }

  private run(): Promise<void> {
    const startedMs = this.clock.monotonic();
    return new Promise<void>((resolve, reject) => {
      fdatasync(this.fd, (error) => {
        if (this.following === null) {
          this.running = null;
          this.onSynced();
        }
        this.onSync(this.clock.monotonic() - startedMs);
        if (error === null) resolve();
        else reject(error);
      });
    });
  }

  async close(): Promise<void> {
    await Promise.allSettled([this.running, this.following]);
    closeSync(this.fd);
  }
}

/** A file is found again after a power cut only when its folder was synced too. Some filesystems refuse; they need none. */
export function syncFolder(folder: string): void {
  const fd = openSync(folder, "r");
  try {
    fsyncSync(fd);
  } catch (error) {
    if (
      !(error instanceof Error) ||
      !("code" in error) ||
      (error.code !== "EINVAL" && error.code !== "EPERM")
    )
      throw error;
  } finally {
    closeSync(fd);
  }
}
