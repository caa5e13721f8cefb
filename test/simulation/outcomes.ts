/** Between engine and store: tells the witness of every claim, and delays and repeats the outcomes of attempts. */
import type { Claim, EngineStore, Store } from "../../src/store/store.ts";
import type { Random } from "./random.ts";
import type { Witness } from "./witness.ts";

type Settle = Parameters<EngineStore["settle"]>;

export class Outcomes {
  /** Outcomes that wait to be let through. */
  private held: (() => void)[] = [];
  /** Outcomes that were stored: told again, they change nothing. */
  private readonly told: Settle[] = [];
  private isOver = false;
  private isHurried = false;
  private readonly store: Store;
  private readonly random: Random;
  private readonly witness: Witness;

  constructor(store: Store, random: Random, witness: Witness) {
    this.store = store;
    this.random = random;
    this.witness = witness;
  }

  watched(): Store {
    const { store } = this;
    return {
      ...store,
      engine: {
        ...store.engine,
        claimDue: async (wanted, now) => {
          const lanes = await store.engine.claimDue(wanted, now);
          if (!this.isOver)
            for (const { claims } of lanes) for (const claim of claims) this.witness.claimed(claim, now);
          return lanes;
        },
        settle: (...settle) => this.settle(settle),
      },
    };
  }

  /** The process is gone, and what it held with it. */
  die(): void {
    this.isOver = true;
    this.held = [];
    this.told.length = 0;
  }

  /** Holds no outcome back from here on. */
  hurry(): void {
    this.isHurried = true;
    for (const release of this.held.splice(0)) release();
  }

  releaseOne(): void {
    const release = this.random.pick(this.held);
    if (release === undefined) return;
    this.held = this.held.filter((other) => other !== release);
    release();
  }

  private async settle(settle: Settle): Promise<boolean> {
    if (!this.isHurried && this.random.chance(0.1))
      await new Promise<void>((resolve) => this.held.push(resolve));
    const settled = await this.store.engine.settle(...settle);
    if (!this.isOver && settled) this.told.push(settle);
    return settled;
  }

  /** An outcome comes again, perhaps long after another attempt began. `store` is the engine's. */
  repeatOne(store: Store): { claim: Claim; settled: Promise<boolean> } | null {
    const settle = this.random.pick(this.told);
    return settle === undefined ? null : { claim: settle[0], settled: store.engine.settle(...settle) };
  }
}
