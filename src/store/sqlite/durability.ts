/** Makes commits durable without stopping the loop: one asynchronous fdatasync of the log for all that came before it. */
import { closeSync, fdatasync, fsyncSync, openSync } from "node:fs";
import type { Clock } from "../../base/clock.ts";

/**
 * SQLite appends commits to the `-wal` file (https://sqlite.org/walformat.html) and, with `synchronous = NORMAL`, syncs
 * it only before a checkpoint. A commit is durable as soon as an fdatasync of that file that began after it has ended.
 * At most one sync is under way; all commits made meanwhile share the next one, so that the group grows with the load.
 *
 * A failed sync is never made good by the next one: the kernel reports a lost page once and then takes it for clean
 * (https://lwn.net/Articles/752063/). So every sync fails after that, until {@link mended}.
 */
export class Durability {
  /** The log, open for as long as the store is. */
  readonly fd: number;
  private running: Promise<void> | null = null;
  private following: Promise<void> | null = null;
  /** Called when no sync is under way any more. */
  onSynced: () => void = () => {};
  private fault: Error | null = null;
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
    if (this.running === null) return this.begin();
    // The sync under way may have begun before the caller's commit: only the next one covers it.
    this.following ??= this.running.then(
      () => this.follow(),
      () => this.follow(),
    );
    return this.following;
  }

  private follow(): Promise<void> {
    this.following = null;
    return this.begin();
  }

  /** All that the log held is in the database file, and that was synced: what was lost of the log does not matter. */
  mended(): void {
    this.fault = null;
  }

  private begin(): Promise<void> {
    if (this.fault !== null) {
      this.ended();
      return Promise.reject(this.fault);
    }
    const startedMs = this.clock.monotonic();
    this.running = new Promise<void>((resolve, reject) => {
      fdatasync(this.fd, (error) => {
        this.fault = error;
        if (this.following === null) this.ended();
        this.onSync(this.clock.monotonic() - startedMs);
        if (error === null) resolve();
        else reject(error);
      });
    });
    return this.running;
  }

  private ended(): void {
    this.running = null;
    this.onSynced();
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
