/** Claims by themselves: how many jobs a second a store on a data folder begins attempts of. */
import { rmSync } from "node:fs";
import { systemClock } from "../../src/base/clock.ts";
import { secretBox } from "../../src/base/secret-box.ts";
import { secretKey } from "../../src/first-boot.ts";
import { openStore } from "../../src/store/sqlite/open.ts";
import type { Lane, Store } from "../../src/store/store.ts";
import type { Figure } from "./rounds.ts";

const CLAIMS_A_ROUND = 150;
/** As many as one origin may have under way. */
const JOBS_A_CLAIM = 64;
/** Later than every delayed job of the benchmark is due. */
const AHEAD_MS = 10 * 86_400_000;

export class Claims {
  private readonly store: Store;
  private readonly folder: string;
  private readonly lane: Lane;

  private constructor(store: Store, folder: string, lane: Lane) {
    this.store = store;
    this.folder = folder;
    this.lane = lane;
  }

  /** The store of a service that has ended. */
  static async open(folder: string): Promise<Claims> {
    const store = openStore({ folder, box: secretBox(secretKey(folder, null)), clock: systemClock });
    const [first] = await store.engine.lanes();
    if (first === undefined) throw new Error(`nothing is pending in ${folder}`);
    return new Claims(store, folder, first.lane);
  }

  /** Claims as the dispatcher would if all delayed jobs were due. */
  async round(): Promise<Figure> {
    const now = systemClock.now() + AHEAD_MS;
    const before = process.cpuUsage();
    const begun = performance.now();
    for (let i = 0; i < CLAIMS_A_ROUND; i++) {
      const [found] = await this.store.engine.claimDue([{ lane: this.lane, limit: JOBS_A_CLAIM }], now);
      if (found?.claims.length !== JOBS_A_CLAIM) throw new Error(`too few jobs to claim in ${this.folder}`);
    }
    const seconds = (performance.now() - begun) / 1_000;
    const { user, system } = process.cpuUsage(before);
    const count = CLAIMS_A_ROUND * JOBS_A_CLAIM;
    return { perSecond: count / seconds, cpu: ((user + system) / 1e6 / count) * 1_000 };
  }

  async close(): Promise<void> {
    await this.store.close();
    rmSync(this.folder, { recursive: true, force: true });
  }
}
