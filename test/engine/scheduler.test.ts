/** Firing by hand with a virtual clock: each due time once, through downtimes, overlaps and broken rules. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import Database from "better-sqlite3";
import { RawJson } from "../../src/base/json.ts";
import { VirtualClock } from "../support/clock.ts";
import { at, schedulingBed, TEMPLATE } from "../support/scheduling.ts";

const START = "2026-03-01 12:00:30";
const MINUTE = 60_000;
const DAY = 86_400_000;

test("a due time makes one job, a line in the ledger and the next due time, however often it is looked at", async (t) => {
  const bed = await schedulingBed(t, new VirtualClock(at(START)));
  const { id } = await bed.schedule();
  assert.equal(await bed.scheduler.step(), at("2026-03-01 12:01:00"));
  assert.deepEqual(await bed.ledger(id), []);
  bed.clock.jump(at("2026-03-01 12:01:00"));
  assert.equal(await bed.scheduler.step(), at("2026-03-01 12:02:00"));
  await bed.scheduler.step();
  const schedule = await bed.read(id);
  assert.deepEqual(await bed.ledger(id), [
    { scheduledFor: at("2026-03-01 12:01:00"), outcome: "fired", jobId: schedule.lastJobId, latenessMs: 0 },
  ]);
  assert.deepEqual(await bed.jobTimes(id), [at("2026-03-01 12:01:00")]);
  assert.equal(schedule.lastRunAt, at("2026-03-01 12:01:00"));
});

test("a restart within the second of a due time neither loses it nor fires it twice", async (t) => {
  const bed = await schedulingBed(t, new VirtualClock(at(START)));
  const { id } = await bed.schedule();
  await bed.restart(() => bed.clock.jump(at("2026-03-01 12:01:00") + 1));
  await bed.scheduler.step();
  await bed.restart(() => bed.clock.jump(at("2026-03-01 12:01:00") + 2));
  await bed.scheduler.step();
  assert.deepEqual(await bed.jobTimes(id), [at("2026-03-01 12:01:00")]);
});

test("starts_at and ends_at both fire, and after the last time nothing is armed", async (t) => {
  const bed = await schedulingBed(t, new VirtualClock(at(START)));
  const [startsAt, endsAt] = [at("2026-03-01 12:05:00"), at("2026-03-01 12:07:00")];
  const { id } = await bed.schedule({ startsAt, endsAt });
  for (let minute = 1; minute < 12; minute++) {
    bed.clock.jump(at("2026-03-01 12:00:00") + minute * MINUTE);
    await bed.scheduler.step();
  }
  assert.deepEqual(await bed.jobTimes(id), [startsAt, startsAt + MINUTE, endsAt]);
  assert.equal((await bed.read(id)).nextRunAt, null);
  await bed.janitor.rearm(bed.clock.now());
  assert.equal((await bed.read(id)).nextRunAt, null);
});

test("after a downtime on_missed decides, and every due time has its line", async (t) => {
  const bed = await schedulingBed(t, new VirtualClock(at(START)));
  const skip = await bed.schedule({ onMissed: "skip" });
  const once = await bed.schedule({ onMissed: "once" });
  const all = await bed.schedule({ onMissed: "all" });
  await bed.restart(() => bed.clock.jump(at("2026-03-01 12:10:30")));
  await bed.scheduler.step();
  const outcomes = async (id: string) => (await bed.ledger(id)).map(({ outcome }) => outcome);
  const times = (outcome: string, count: number) => Array.from({ length: count }, () => outcome);
  assert.deepEqual(await outcomes(skip.id), [...times("missed", 9), "fired"]);
  assert.deepEqual(await outcomes(once.id), [...times("missed", 9), "fired"]);
  assert.deepEqual(await outcomes(all.id), [...times("late", 9), "fired"]);
  assert.equal((await bed.jobTimes(all.id)).length, 10);
  for (const { id } of [skip, once, all]) {
    assert.equal((await bed.ledger(id)).length, 10);
    assert.equal((await bed.read(id)).nextRunAt, at("2026-03-01 12:11:00"));
  }
});

test("30 days of downtime are recorded in small steps, and who is on time does not wait for them", async (t) => {
  const bed = await schedulingBed(t, new VirtualClock(at(START)));
  const long = await bed.schedule();
  const now = at("2026-03-31 12:00:30");
  await bed.restart(() => bed.clock.jump(now));
  const onTime = await bed.schedule();
  bed.clock.jump(now + MINUTE);

  const order: string[] = [];
  bed.store.subscribe((changes) => {
    const lines = changes.filter((change) => change.kind === "schedule");
    assert.ok(lines.length <= 2, "one transaction holds one step of a schedule");
    for (const change of lines) order.push(change.scheduleId === long.id ? change.event : "on time");
  });
  await bed.scheduler.step();
  assert.equal(order[0], "on time");
  assert.ok(order.slice(-2).includes("fired"), "what fires comes last");
  assert.ok(order.filter((event) => event === "missed").length > 40);
  const ledger = await bed.ledger(long.id);
  assert.equal(ledger.length, 30 * 1_440 + 1);
  assert.ok(ledger.every(({ scheduledFor }, i) => scheduledFor === ledger[0]!.scheduledFor + i * MINUTE));
  assert.deepEqual(await bed.jobTimes(long.id), [at("2026-03-31 12:01:00")]);
  assert.deepEqual(await bed.jobTimes(onTime.id), [at("2026-03-31 12:01:00")]);
});

test("large payloads become jobs a few at a time, those of one schedule and those of many", async (t) => {
  const bed = await schedulingBed(t, new VirtualClock(at(START)));
  const job = { ...TEMPLATE, payload: new RawJson(`"${"x".repeat(1_000_000)}"`) };
  const catchingUp = await bed.schedule({ cronExpr: "0 * * * *", onMissed: "all", job });
  for (let i = 0; i < 20; i += 1) await bed.schedule({ cronExpr: "0 13 * * *", job });
  await bed.restart(() => bed.clock.jump(at("2026-03-01 23:30:00")));

  let fired = 0;
  bed.store.subscribe((changes) => {
    const jobs = changes.filter((change) => change.kind === "schedule" && change.event === "fired").length;
    assert.ok(jobs <= 8, `${jobs} jobs of 1 MB in one transaction`);
    fired += jobs;
  });
  await bed.scheduler.step();
  const ofOne = (await bed.jobTimes(catchingUp.id)).length;
  assert.ok(ofOne > 8);
  assert.equal(fired, ofOne + 20);
});

test("a crash in the middle of a long downtime goes on where it was, with the same result", async (t) => {
  const bed = await schedulingBed(t, new VirtualClock(at(START)));
  const all = await bed.schedule({ onMissed: "all" });
  await bed.restart(() => bed.clock.jump(at(START) + 2 * DAY));
  for (let crash = 0; crash < 5; crash++) {
    const fire = bed.store.schedules.fire.bind(bed.store.schedules);
    let left = 2;
    bed.store.schedules.fire = (firings, now) =>
      left-- > 0 ? fire(firings, now) : Promise.reject(new Error("the process died"));
    await assert.rejects(bed.scheduler.step(), /died/);
    await bed.restart();
  }
  await bed.scheduler.step();
  const times = await bed.jobTimes(all.id);
  assert.equal(new Set(times).size, times.length);
  assert.equal(times.length, 1_000);
  assert.equal(times.at(-1), at("2026-03-03 12:00:00"));
  const ledger = await bed.ledger(all.id);
  assert.equal(ledger.length, 2 * 1_440);
  assert.equal(ledger.filter(({ outcome }) => outcome === "missed").length, 2 * 1_440 - 1_000);
});

test("on_overlap skip leaves a line and no job while a job of the schedule is unfinished", async (t) => {
  const bed = await schedulingBed(t, new VirtualClock(at(START)));
  const { id } = await bed.schedule({ onOverlap: "skip" });
  const minute = async (n: number) => {
    bed.clock.jump(at("2026-03-01 12:00:00") + n * MINUTE);
    await bed.scheduler.step();
  };
  await minute(1);
  await minute(2);
  await bed.store.jobs.changeAll(bed.tenant, {}, ["pending"], () => ({
    status: "cancelled",
    dueAt: null,
    finishedAt: bed.clock.now(),
    updatedAt: bed.clock.now(),
  }));
  await minute(3);
  assert.deepEqual(
    (await bed.ledger(id)).map(({ outcome, jobId }) => [outcome, jobId !== null]),
    [
      ["fired", true],
      ["skipped_overlap", false],
      ["fired", true],
    ],
  );
});

test("a schedule that this version cannot reckon is set aside and says so; the others fire, and it comes back", async (t) => {
  const bed = await schedulingBed(t, new VirtualClock(at(START)));
  const broken = await bed.schedule();
  const sound = await bed.schedule();
  const setZone = (zone: string) => () => {
    const db = new Database(join(bed.folder, "errand.db"));
    db.prepare("UPDATE schedules SET timezone = ? WHERE id = ?").run(zone, broken.id);
    db.close();
  };
  await bed.restart(setZone("Europe/Atlantis"));
  bed.clock.jump(at("2026-03-01 12:01:00"));
  assert.equal(await bed.scheduler.step(), at("2026-03-01 12:02:00"));
  assert.equal((await bed.jobTimes(sound.id)).length, 1);
  assert.equal((await bed.read(broken.id)).nextRunAt, null);
  await bed.janitor.rearm(bed.clock.now());
  await bed.restart(setZone("Europe/Berlin"));
  await bed.janitor.rearm(bed.clock.now());
  assert.equal((await bed.read(broken.id)).nextRunAt, at("2026-03-01 12:02:00"));
});

test("a schedule that lost its next run gets it back", async (t) => {
  const bed = await schedulingBed(t, new VirtualClock(at(START)));
  const { id, tenant } = await bed.schedule();
  await bed.store.schedules.update(tenant, id, (schedule) => ({ ...schedule, nextRunAt: null }));
  await bed.janitor.rearm(bed.clock.now());
  assert.equal((await bed.read(id)).nextRunAt, at("2026-03-01 12:01:00"));
});

test("the ledger is pruned with retention, and goes with its schedule", async (t) => {
  const bed = await schedulingBed(t, new VirtualClock(at(START)));
  const first = await bed.schedule({ onMissed: "skip" });
  const second = await bed.schedule({ onMissed: "skip" });
  bed.clock.jump(at(START) + 10 * DAY);
  await bed.scheduler.step();
  const before = at(START) + 9 * DAY;
  while (await bed.store.maintenance.prune(before, bed.clock.now()));
  for (const { id } of [first, second]) {
    const ledger = await bed.ledger(id);
    assert.equal(ledger.length, 1_440);
    assert.ok(ledger[0]!.scheduledFor >= before);
  }
  assert.equal(await bed.store.schedules.remove(bed.tenant, first.id, bed.clock.now()), true);
  assert.deepEqual(await bed.ledger(first.id), []);
  assert.equal((await bed.ledger(second.id)).length, 1_440);
});
