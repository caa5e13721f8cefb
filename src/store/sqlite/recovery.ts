/** After the disk failed: looks about once a second whether it can be relied on again. */
import type { Clock } from "../../base/clock.ts";
import type { Connection } from "./connection.ts";
import type { Durability } from "./durability.ts";
import type { StoreThread } from "./thread.ts";
import type { Trouble, Writer } from "./writer.ts";

const LOOK_EVERY_MS = 1_000;

interface Parts {
  readonly db: Connection;
  readonly writer: Writer;
  readonly durability: Durability;
  readonly thread: StoreThread;
  readonly clock: Clock;
  readonly onFailure: (what: string, error: unknown) => void;
}

/**
 * Trouble ends when the log was found whole and written anew, see log.ts, when all of it was copied into the database
 * file and synced there, since then nothing depends on what a failed sync may have lost, and when a write of its own
 * went through. Meanwhile the writer refuses everything. Where the log is not whole any more only a new start helps, which
 * reads it up to the first fault: what is behind that was never acknowledged.
 *
 * A stop meanwhile leaves the log as it is. A limit: SQLite copies it when the last connection is closed, so another
 * command that writes to the folder must not outlast the service then.
 */
export class Recovery {
  private readonly parts: Parts;
  private readonly probe;
  private cancelTimer: () => void = () => {};
  private running: Promise<void> | null = null;
  /** Why it was not over yet the last time: said again only when that changes. */
  private said = "";

  constructor(parts: Parts) {
    this.parts = parts;
    this.probe = parts.db.prepare("INSERT OR REPLACE INTO facts (name, value) VALUES ('probe', ?)");
    parts.writer.onTrouble = (trouble) => this.begin(trouble);
  }

  async close(): Promise<void> {
    this.parts.writer.onTrouble = () => {};
    this.cancelTimer();
    await this.running;
    this.cancelTimer();
  }

  private begin(trouble: Trouble): void {
    this.said = "";
    this.parts.onFailure("writing", new Error(trouble.reason));
    if (trouble.canPass) this.lookLater();
  }

  private lookLater(): void {
    this.cancelTimer = this.parts.clock.timer(LOOK_EVERY_MS, () => {
      this.running = this.look().finally(() => (this.running = null));
    });
  }

  private async look(): Promise<void> {
    const { writer, durability, thread, clock } = this.parts;
    try {
      await thread.ask("rewrite");
      const { frames } = await thread.ask("restart");
      if (frames > 0) throw new Error("the log is in use by another process");
      durability.mended();
      this.probe.run(String(clock.now()));
      await durability.sync();
      writer.recovered();
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      if (reason !== this.said) this.parts.onFailure("going on after that", error);
      this.said = reason;
      this.lookLater();
    }
  }
}
