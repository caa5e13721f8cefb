/** What happened in a simulation, in order and in names that are equal in every run of the same seed. */
import { createHash } from "node:crypto";

/** Lines that a failure shows. */
const SHOWN = 60;

export class Trace {
  private readonly entries: { readonly at: number; readonly text: string }[] = [];
  private readonly clock: { now(): number };

  constructor(clock: { now(): number }) {
    this.clock = clock;
  }

  add(text: string): void {
    this.entries.push({ at: this.clock.now(), text });
  }

  /** Two runs with the same fingerprint were the same run. */
  get fingerprint(): string {
    const hash = createHash("sha256").update(this.lines(this.entries.length)).digest("hex");
    return `${this.entries.length} ${hash.slice(0, 16)}`;
  }

  toString(): string {
    return this.lines(SHOWN);
  }

  private lines(count: number): string {
    const first = Math.max(0, this.entries.length - count);
    return this.entries
      .slice(first)
      .map(
        ({ at, text }, i) =>
          `${String(first + i).padStart(5)} ${new Date(at).toISOString().slice(5, 23)} ${text}`,
      )
      .join("\n");
  }
}
