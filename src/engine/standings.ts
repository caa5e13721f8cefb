/** What is remembered of origins, also while they have no job: see {@link Standing}. */
import type { Standing } from "./shares.ts";

/** Origins remembered; those that ended an attempt longest ago are forgotten first. */
const REMEMBERED = 10_000;

export class Standings {
  private readonly known = new Map<string, Standing>();

  of(origin: string): Standing {
    return this.known.get(origin) ?? "new";
  }

  learn(origin: string, standing: Standing): void {
    this.known.delete(origin);
    if (standing === "new") return;
    this.known.set(origin, standing);
    if (this.known.size <= REMEMBERED) return;
    const [oldest] = this.known.keys();
    if (oldest !== undefined) this.known.delete(oldest);
  }
}
