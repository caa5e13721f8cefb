/** Housekeeping leaves the loop to others between two steps. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { VirtualClock } from "../support/clock.ts";
import { schedulingBed } from "../support/scheduling.ts";

test("retention rests after each step, however long the step took", async (t) => {
  const clock = new VirtualClock();
  const bed = await schedulingBed(t, clock);
  t.mock.method(bed.store.maintenance, "prune", async () => {
    clock.jump(clock.now() + 200);
    return true;
  });
  const next = await bed.janitor.prune(clock.now());
  assert.ok(next > clock.now(), `due ${clock.now() - next} ms ago`);
});
