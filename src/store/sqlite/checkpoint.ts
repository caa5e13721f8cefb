/** Keeps the log small: copies it into the file on the second thread whenever it has grown, beside the writers. */
import { fstatSync } from "node:fs";
import { isIoError } from "./fault.ts";
import type { StoreThread } from "./thread.ts";
import type { Writer } from "./writer.ts";

/** Below this the log is left alone. */
const CHECKPOINT_BYTES = 4 * 1024 * 1024;
/** Frames (pages) that may be left to copy while nobody writes: a few milliseconds. More is copied beforehand. */
const RESTART_FRAMES = 256;
const MAX_ROUNDS = 5;
/** The size of the log is looked at once in so many commits, more rarely after a try that another process stood in the way of. */
const COMMITS_A_LOOK = 16;
const COMMITS_AFTER_BUSY = 1_024;

export class Checkpointer {
  private commitsToLook = COMMITS_A_LOOK;
  private running: Promise<void> | null = null;
  private readonly walFd: number;
  private readonly writer: Writer;
  private readonly thread: StoreThread;
  private readonly onFailure: (error: unknown) => void;

  constructor(walFd: number, writer: Writer, thread: StoreThread, onFailure: (error: unknown) => void) {
    this.walFd = walFd;
    this.writer = writer;
    this.thread = thread;
    this.onFailure = onFailure;
    writer.onCommit = () => this.afterCommit();
  }

  /** Copies all of the log into the file and begins it afresh. */
  async run(): Promise<void> {
    // Most of the copying goes on while others write; what they add meanwhile is copied in the next round.
    for (let round = 0; round < MAX_ROUNDS; round++) {
      const { frames, copied } = await this.ask("checkpoint");
      if (frames - copied < RESTART_FRAMES) break;
    }
    // The log can only begin afresh in a moment without a writer. Holding the writers here keeps the loop from
    // waiting for a lock in a system call.
    const { frames } = await this.writer.exclusively(() => this.ask("restart"));
    if (frames > 0) this.commitsToLook = COMMITS_AFTER_BUSY;
  }

  async close(): Promise<void> {
    this.writer.onCommit = () => {};
    await this.running;
  }

  /**
   * The thread syncs the log, too, and a sync that failed there has lost pages just as one of durability.ts: another try
   * would copy what it finds in their place. So that is trouble. After any other failure the log merely grows.
   */
  private async ask(task: "checkpoint" | "restart") {
    try {
      return await this.thread.ask(task);
    } catch (error) {
      throw isIoError(error) ? this.writer.judgeRead(error) : error;
    }
  }

  private afterCommit(): void {
    this.commitsToLook -= 1;
    if (this.running !== null || this.commitsToLook > 0) return;
    this.commitsToLook = COMMITS_A_LOOK;
    if (fstatSync(this.walFd).size < CHECKPOINT_BYTES) return;
    this.running = this.run()
      .catch(this.onFailure)
      .finally(() => (this.running = null));
  }
}
