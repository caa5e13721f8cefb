/** The wall clock jumps, stands still and is set back: no due time fires twice, and none is without a trace. */
import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";
import { Loop } from "../../src/engine/loop.ts";
import { settle, VirtualClock } from "../support/clock.ts";
import { at, type Bed, schedulingBed } from "../support/scheduling.ts";

const START = "2026-03-01 12:00:30";
const MINUTE = 60_000;

/** One look of the engine at the clock: the janitor's, then the scheduler's. */
async function look(bed: Bed): Promise<void> {
  await bed.janitor.rearm(bed.clock.now());
  await bed.scheduler.step();
}

test("a clock set back a little fires nothing twice", async (t) => {
  const bed = await schedulingBed(t, new VirtualClock(at(START)));
  const { id } = await bed.schedule();
  await look(bed);
  for (const time of ["12:01:01", "12:00:50", "12:01:00", "12:01:59", "12:00:59", "12:02:00"]) {
    bed.clock.jump(at(`2026-03-01 ${time}`));
    await look(bed);
  }
  assert.deepEqual(await bed.jobTimes(id), [at("2026-03-01 12:01:00"), at("2026-03-01 12:02:00")]);
});

test("a due time that made no job and comes again makes none again: its line stays and is told once", async (t) => {
  const bed = await schedulingBed(t, new VirtualClock(at(START)));
  const { id } = await bed.schedule({ onOverlap: "skip" });
  let told = 0;
  bed.store.subscribe((changes) => {
    told += changes.filter((change) => change.kind === "schedule" && change.event === "skipped").length;
  });
  for (const time of ["12:01:00", "12:02:00"]) {
    bed.clock.jump(at(`2026-03-01 ${time}`));
    await look(bed);
  }
  const ledger = await bed.ledger(id);
  bed.clock.jump(at("2026-03-01 12:02:20"));
  await bed.store.schedules.update(bed.tenant, id, (found) => ({
    ...found,
    nextRunAt: at("2026-03-01 12:02:00"),
  }));
  await look(bed);
  assert.deepEqual(
    ledger.map(({ outcome }) => outcome),
    ["fired", "skipped_overlap"],
  );
  assert.deepEqual([await bed.ledger(id), told], [ledger, 1]);
});

test("a clock that was years ahead does not keep a schedule silent once it is right again", async (t) => {
  const bed = await schedulingBed(t, new VirtualClock(at(START)));
  const { id } = await bed.schedule({ cronExpr: "0 * * * *" });
  await look(bed);
  bed.clock.jump(at("2028-03-01 12:30:00"));
  await look(bed);
  assert.equal((await bed.read(id)).nextRunAt, at("2028-03-01 13:00:00"));
  // With the process running, and after a restart in between.
  bed.clock.jump(at("2026-03-01 12:31:00"));
  await look(bed);
  assert.equal((await bed.read(id)).nextRunAt, at("2026-03-01 13:00:00"));
  bed.clock.jump(at("2026-03-01 13:00:00"));
  await look(bed);
  bed.clock.jump(at("2028-03-01 12:30:00"));
  await look(bed);
  await bed.restart(() => bed.clock.jump(at("2026-03-01 13:30:00")));
  await look(bed);
  bed.clock.jump(at("2026-03-01 14:00:00"));
  await look(bed);
  assert.deepEqual(await bed.jobTimes(id), [
    at("2028-03-01 12:00:00"),
    at("2026-03-01 13:00:00"),
    at("2026-03-01 14:00:00"),
  ]);
  const [line] = await bed.ledger(id);
  assert.equal(line?.outcome, "fired", "missed while the clock was ahead, made up for when its time came");
});

test("a rare schedule comes back too, though retention has removed what a clock ahead of its time wrote", async (t) => {
  const bed = await schedulingBed(t, new VirtualClock(at(START)));
  const { id } = await bed.schedule({ cronExpr: "0 0 1 6 *", onMissed: "skip" });
  await look(bed);
  bed.clock.jump(at("2028-03-01 12:00:00"));
  await look(bed);
  while (await bed.janitor.prune(bed.clock.now()).then((next) => next - bed.clock.now() < 1_000));
  assert.deepEqual(await bed.ledger(id), []);
  bed.clock.jump(at("2026-03-01 12:05:00"));
  await look(bed);
  assert.equal((await bed.read(id)).nextRunAt, at("2026-06-01 00:00:00"));
});

test("what an old backup holds stays until the restored service is let go", async (t) => {
  const bed = await schedulingBed(t, new VirtualClock(at(START)));
  const { id } = await bed.schedule({ cronExpr: "0 0 1 6 *", onMissed: "skip" });
  bed.clock.jump(at("2026-06-01 00:00:00"));
  await look(bed);
  await bed.store.maintenance.hold(true);
  bed.clock.jump(at("2026-09-01 00:00:00"));
  await bed.janitor.prune(bed.clock.now());
  assert.equal((await bed.ledger(id)).length, 1);
  await bed.store.maintenance.hold(false);
  await bed.janitor.prune(bed.clock.now());
  assert.deepEqual(await bed.ledger(id), []);
});

test("however many schedules a wrong clock put off, all come back, and few are read at once", async (t) => {
  const bed = await schedulingBed(t, new VirtualClock(at("2028-03-01 12:00:30")));
  const made: string[] = [];
  for (let i = 0; i < 250; i += 1) made.push((await bed.schedule({ cronExpr: "0 0 1 6 *" })).id);
  bed.clock.jump(at(START));
  const { schedules } = bed.store;
  const ahead = schedules.ahead.bind(schedules);
  const read: number[] = [];
  t.mock.method(schedules, "ahead", async (...args: Parameters<typeof ahead>) => {
    const page = await ahead(...args);
    read.push(page.items.length);
    return page;
  });
  await look(bed);
  for (const id of made) assert.equal((await bed.read(id)).nextRunAt, at("2026-06-01 00:00:00"));
  assert.deepEqual(read, [100, 100, 50]);
});

for (const failing of ["ahead", "update"] as const)
  test(`a look back of which ${failing} failed is made again`, async (t) => {
    const bed = await schedulingBed(t, new VirtualClock(at("2028-03-01 12:00:30")));
    const { id } = await bed.schedule({ cronExpr: "0 0 1 6 *" });
    bed.clock.jump(at(START));
    const command = t.mock.method(bed.store.schedules, failing);
    command.mock.mockImplementationOnce(() => Promise.reject(new Error("the disk is in trouble")));
    await assert.rejects(look(bed), /in trouble/);
    bed.clock.jump(bed.clock.now() + 1_000);
    await look(bed);
    assert.equal((await bed.read(id)).nextRunAt, at("2026-06-01 00:00:00"));
  });

test("whatever the clock does, a due time makes one job at most and has one line", async (t) => {
  const bed = await schedulingBed(t, new VirtualClock(at(START)));
  const move = fc.oneof(
    {
      weight: 4,
      arbitrary: fc.record({ by: fc.integer({ min: 1, max: 90_000 }), restart: fc.constant(false) }),
    },
    {
      weight: 1,
      arbitrary: fc.record({ by: fc.integer({ min: -600_000, max: 3_600_000 }), restart: fc.boolean() }),
    },
  );
  const policy = fc.constantFrom("skip" as const, "once" as const, "all" as const);
  await fc.assert(
    fc.asyncProperty(policy, fc.array(move, { minLength: 1, maxLength: 25 }), async (onMissed, moves) => {
      bed.clock.jump(at(START));
      await look(bed); // the run before may have ended earlier: as everywhere here, no jump goes unseen
      const { id } = await bed.schedule({ onMissed });
      const came = new Set<number>();
      for (const { by, restart } of moves) {
        if (restart) await bed.restart();
        const before = bed.clock.now();
        bed.clock.jump(before + by);
        for (let time = Math.ceil((before + 1) / MINUTE) * MINUTE; time <= bed.clock.now(); time += MINUTE)
          came.add(time);
        await look(bed);
        const { nextRunAt } = await bed.read(id);
        assert.ok(nextRunAt !== null && nextRunAt > bed.clock.now(), "it always has a next run");
        assert.ok(nextRunAt <= bed.clock.now() + MINUTE, "and the clock is not waited for in vain");
      }
      const ledger = (await bed.ledger(id)).map(({ scheduledFor }) => scheduledFor);
      assert.deepEqual(
        ledger,
        [...came].toSorted((a, b) => a - b),
        "one line for each due time that ever came",
      );
      const jobs = await bed.jobTimes(id);
      assert.equal(new Set(jobs).size, jobs.length, "no due time made two jobs");
      await bed.store.schedules.remove(bed.tenant, id, bed.clock.now());
    }),
    { numRuns: 60 },
  );
});

test("a loop looks again when the clock was set back under it, and after a suspend that no timer saw", async () => {
  const clock = new VirtualClock(at(START));
  const steps: number[] = [];
  const loop = new Loop(
    async (now) => {
      steps.push(now);
      return now + 3_600_000;
    },
    clock,
    (error) => assert.fail(String(error)),
  );
  loop.start();
  await settle();
  clock.jump(at("2026-03-01 11:00:00"));
  await clock.advance("2s");
  assert.equal(steps.length, 2);
  clock.jump(at("2026-03-01 18:00:00"));
  await clock.advance("2s");
  assert.equal(steps.length, 3);
  await clock.advance("10s");
  assert.equal(steps.length, 3);
  await loop.stop();
});
