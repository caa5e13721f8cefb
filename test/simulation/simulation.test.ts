/** A quick slice of the simulations, and the proof that they notice when a rule is broken: `npm run simulate` runs thousands. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { BREAKAGES, type BrokenRule } from "./breakages.ts";
import { SimulationFailure, simulate } from "./simulate.ts";

const SEEDS = 200;
/** Every breakage is found within so many seeds. */
const SEEDS_TO_CATCH = 60;

test(`${SEEDS} seeds keep every promise`, async () => {
  for (let seed = 1; seed <= SEEDS; seed++) await simulate(seed);
});

test("a seed is the same run every time", async () => {
  const first = await simulate(7);
  await simulate(8);
  assert.deepEqual(await simulate(7), first);
});

describe("the simulation catches a broken rule", () => {
  for (const [rule, broken] of Object.entries(BREAKAGES)) {
    test(rule, async () => {
      assert.match(await firstFailure(broken), broken.says);
    });
  }
});

async function firstFailure({ breakage, backup }: BrokenRule): Promise<string> {
  for (let seed = 1; seed <= SEEDS_TO_CATCH; seed++) {
    try {
      await simulate(seed, breakage, backup);
    } catch (error) {
      assert.ok(error instanceof SimulationFailure, String(error));
      return error.reason;
    }
  }
  return `nothing in ${SEEDS_TO_CATCH} seeds`;
}
