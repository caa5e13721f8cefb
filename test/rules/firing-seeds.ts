/** Runs a property with a new seed each time and prints it; ERRAND_TEST_SEED replays one. */
import type { TestContext } from "node:test";
import * as fc from "fast-check";

export function holds<T extends unknown[]>(t: TestContext, runs: number, property: fc.IProperty<T>): void {
  const seed = Number(process.env["ERRAND_TEST_SEED"] ?? Math.trunc(Math.random() * 2 ** 31));
  t.diagnostic(`seed ${seed}`);
  fc.assert(property, { seed, numRuns: runs });
}
