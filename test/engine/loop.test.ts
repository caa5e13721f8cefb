/** The loop: no wake-up is lost, no sleep is too long or too short for a clock. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { Loop, type Step } from "../../src/engine/loop.ts";
import { settle, VirtualClock } from "../support/clock.ts";
import { gate } from "../support/target.ts";

function looped(step: Step) {
  const clock = new VirtualClock(1_000_000);
  const errors: unknown[] = [];
  const loop = new Loop(step, clock, (error) => errors.push(error));
  return { clock, loop, errors };
}

describe("the loop", () => {
  test("steps at the start, when it is due, and when it is nudged", async () => {
    const steps: number[] = [];
    const { clock, loop } = looped(async (now) => {
      steps.push(now - 1_000_000);
      return steps.length === 1 ? now + 5_500 : null;
    });
    loop.start();
    await clock.advance("5s");
    assert.deepEqual(steps, [0]);
    await clock.advance(500);
    assert.deepEqual(steps, [0, 5_500]);
    await clock.advance("1d");
    assert.deepEqual(steps, [0, 5_500]);
    loop.nudge();
    await settle();
    assert.equal(steps.length, 3);
  });

  test("a nudge during a step is not lost, and many are one", async () => {
    let steps = 0;
    const { wait, open } = gate();
    const { loop } = looped(async () => {
      steps += 1;
      if (steps === 1) await wait;
      return null;
    });
    loop.start();
    await settle();
    for (let i = 0; i < 5; i++) loop.nudge();
    assert.equal(steps, 1, "never two steps at once");
    open();
    await settle();
    assert.equal(steps, 2);
  });

  test("a wake time beyond 2^31 ms does not fire at once, and does fire", async () => {
    const steps: number[] = [];
    const far = 2 ** 31 + 5_000;
    const { clock, loop } = looped(async (now) => {
      steps.push(now - 1_000_000);
      return steps.length === 1 ? now + far : null;
    });
    loop.start();
    await clock.advance("1m");
    assert.equal(steps.length, 1);
    clock.jump(1_000_000 + far - 500);
    await clock.advance("2s");
    assert.equal(steps.length, 2);
    assert.ok(steps[1]! >= far);
  });

  test("a wall clock that jumps ahead is noticed within a second, and so is one that is set back", async () => {
    let steps = 0;
    const { clock, loop } = looped(async (now) => {
      steps += 1;
      return now + 3_600_000;
    });
    loop.start();
    await settle();
    clock.jump(1_000_000 + 3_600_000);
    await clock.advance("1s");
    assert.equal(steps, 2);
    clock.jump(1_000_000);
    await clock.advance("1h");
    assert.equal(steps, 3);
    await clock.advance("1m");
    assert.equal(steps, 4);
  });

  test("a step that fails is told and tried again, also when it was nudged all the while", async () => {
    let steps = 0;
    const { clock, loop, errors } = looped(async () => {
      steps += 1;
      loop.nudge();
      if (steps < 3) throw new Error("no");
      return null;
    });
    loop.start();
    await settle();
    assert.deepEqual([steps, errors.length], [1, 1]);
    await clock.advance("1s");
    assert.deepEqual([steps, errors.length], [2, 2]);
    await loop.stop();
  });

  test("stop waits for the step under way and takes no other", async () => {
    let steps = 0;
    const { wait, open } = gate();
    const { clock, loop } = looped(async (now) => {
      steps += 1;
      await wait;
      return now;
    });
    loop.start();
    await settle();
    let stopped = false;
    const stopping = loop.stop().then(() => (stopped = true));
    loop.nudge();
    await settle();
    assert.equal(stopped, false);
    open();
    await stopping;
    await clock.advance("1h");
    assert.equal(steps, 1);
  });
});
