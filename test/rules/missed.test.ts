/** What becomes of due times after downtime, under each policy. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import * as fc from "fast-check";
import { type FireTimes, nextFireTime } from "../../src/schedules/firing.ts";
import { LATE_AFTER_MS, MAX_CATCH_UP, MAX_RECORDED, planFiring } from "../../src/schedules/missed.ts";
import { firingsOf, MAX_WEIGHT, weightOf } from "../../src/schedules/run.ts";
import { MISSED_POLICIES, type MissedPolicy } from "../../src/schedules/schedule.ts";
import { aSchedule } from "../support/factories.ts";
import { holds } from "./firing-seeds.ts";

const DAY_MS = 86_400_000;

function rule(cronExpr: string, timezone = "UTC", endsAt: string | null = null): FireTimes {
  return { cronExpr, timezone, startsAt: null, endsAt: endsAt === null ? null : Date.parse(endsAt) };
}

/** "12:09:00 late" for what fires, "12:08:00" for what is missed. */
function plan(
  schedule: FireTimes,
  policy: MissedPolicy,
  dueAt: string,
  now: string,
): { fire: string[]; missed: string[]; next: string | null } {
  const time = (at: number): string => new Date(at).toISOString().slice(11, 19);
  const made = planFiring(schedule, policy, Date.parse(dueAt), Date.parse(now));
  assert.equal(made.unrecordedBefore, null);
  return {
    fire: made.fire.map(({ scheduledFor, outcome }) => `${time(scheduledFor)} ${outcome}`),
    missed: made.missed.map(time),
    next: made.next === null ? null : time(made.next),
  };
}

const EXAMPLES: readonly {
  why: string;
  cron: string;
  dueAt: string;
  now: string;
  policies: readonly MissedPolicy[];
  fire: readonly string[];
  missed: readonly string[];
  next: string | null;
  endsAt?: string;
}[] = [
  {
    why: "nothing is due yet",
    cron: "0 * * * *",
    policies: MISSED_POLICIES,
    dueAt: "2026-05-01T12:00Z",
    now: "2026-05-01T11:59:59.999Z",
    fire: [],
    missed: [],
    next: "12:00:00",
  },
  {
    why: "due this very moment",
    cron: "0 * * * *",
    policies: MISSED_POLICIES,
    dueAt: "2026-05-01T12:00Z",
    now: "2026-05-01T12:00Z",
    fire: ["12:00:00 fired"],
    missed: [],
    next: "13:00:00",
  },
  {
    why: "60 s after its time is on time",
    cron: "0 * * * *",
    policies: MISSED_POLICIES,
    dueAt: "2026-05-01T12:00Z",
    now: "2026-05-01T12:01Z",
    fire: ["12:00:00 fired"],
    missed: [],
    next: "13:00:00",
  },
  {
    why: "a millisecond more is late",
    cron: "0 * * * *",
    policies: ["once", "all"],
    dueAt: "2026-05-01T12:00Z",
    now: "2026-05-01T12:01:00.001Z",
    fire: ["12:00:00 late"],
    missed: [],
    next: "13:00:00",
  },
  {
    why: "and missed for skip",
    cron: "0 * * * *",
    policies: ["skip"],
    dueAt: "2026-05-01T12:00Z",
    now: "2026-05-01T12:01:00.001Z",
    fire: [],
    missed: ["12:00:00"],
    next: "13:00:00",
  },
  {
    why: "three hours down, skip",
    cron: "0 * * * *",
    policies: ["skip"],
    dueAt: "2026-05-01T12:00Z",
    now: "2026-05-01T14:30Z",
    fire: [],
    missed: ["12:00:00", "13:00:00", "14:00:00"],
    next: "15:00:00",
  },
  {
    why: "three hours down, once",
    cron: "0 * * * *",
    policies: ["once"],
    dueAt: "2026-05-01T12:00Z",
    now: "2026-05-01T14:30Z",
    fire: ["14:00:00 late"],
    missed: ["12:00:00", "13:00:00"],
    next: "15:00:00",
  },
  {
    why: "three hours down, all, oldest first",
    cron: "0 * * * *",
    policies: ["all"],
    dueAt: "2026-05-01T12:00Z",
    now: "2026-05-01T14:30Z",
    fire: ["12:00:00 late", "13:00:00 late", "14:00:00 late"],
    missed: [],
    next: "15:00:00",
  },
  {
    why: "back 20 s after a due time: it is on time, and for once it stands in for the missed ones",
    cron: "* * * * *",
    policies: ["skip", "once"],
    dueAt: "2026-05-01T12:00Z",
    now: "2026-05-01T12:03:20Z",
    fire: ["12:03:00 fired"],
    missed: ["12:00:00", "12:01:00", "12:02:00"],
    next: "12:04:00",
  },
  {
    why: "the same with all",
    cron: "* * * * *",
    policies: ["all"],
    dueAt: "2026-05-01T12:00Z",
    now: "2026-05-01T12:03:20Z",
    fire: ["12:00:00 late", "12:01:00 late", "12:02:00 late", "12:03:00 fired"],
    missed: [],
    next: "12:04:00",
  },
  {
    why: "back exactly at a due time: the one of 60 s ago is no second job for once",
    cron: "* * * * *",
    policies: ["once"],
    dueAt: "2026-05-01T12:00Z",
    now: "2026-05-01T12:03Z",
    fire: ["12:03:00 fired"],
    missed: ["12:00:00", "12:01:00", "12:02:00"],
    next: "12:04:00",
  },
  {
    why: "two due times within 60 s, nothing overdue: a slow minute is no downtime",
    cron: "* * * * *",
    policies: MISSED_POLICIES,
    dueAt: "2026-05-01T12:00Z",
    now: "2026-05-01T12:01Z",
    fire: ["12:00:00 fired", "12:01:00 fired"],
    missed: [],
    next: "12:02:00",
  },
  {
    why: "the schedule ended while nothing ran",
    cron: "0 * * * *",
    policies: ["once"],
    endsAt: "2026-05-01T13:00Z",
    dueAt: "2026-05-01T12:00Z",
    now: "2026-05-01T15:30Z",
    fire: ["13:00:00 late"],
    missed: ["12:00:00"],
    next: null,
  },
  {
    why: "the end was moved before the due time",
    cron: "0 * * * *",
    policies: MISSED_POLICIES,
    endsAt: "2026-05-01T11:30Z",
    dueAt: "2026-05-01T12:00Z",
    now: "2026-05-01T15:30Z",
    fire: [],
    missed: [],
    next: null,
  },
  {
    why: "a stored due time is kept, also when the zone's rules have changed since",
    cron: "0 12 * * *",
    policies: MISSED_POLICIES,
    dueAt: "2026-05-01T11:00Z",
    now: "2026-05-01T11:00:10Z",
    fire: ["11:00:00 fired"],
    missed: [],
    next: "12:00:00",
  },
];

describe("planFiring", () => {
  for (const { why, cron, dueAt, now, policies, endsAt, ...expected } of EXAMPLES) {
    for (const policy of policies) {
      it(`${policy}: ${why}`, () => {
        assert.deepEqual(plan(rule(cron, "UTC", endsAt ?? null), policy, dueAt, now), expected);
      });
    }
  }

  it("fires nothing while the service is held, what is on time as little as what is late", () => {
    for (const minutes of [0, 3]) {
      const dueAt = Date.UTC(2026, 4, 1, 12);
      const { fire, missed, next } = planFiring(rule("* * * * *"), "none", dueAt, dueAt + minutes * 60_000);
      assert.deepEqual([fire.length, missed.length, next], [0, minutes + 1, dueAt + (minutes + 1) * 60_000]);
    }
  });

  it("names each of the 43,200 due times of a minutely schedule after 30 days", () => {
    const now = Date.UTC(2026, 10, 1, 0, 0, 30);
    const expected = Array.from({ length: 43_200 }, (_, i) => Date.UTC(2026, 9, 2, 0, 1) + i * 60_000);
    for (const policy of MISSED_POLICIES) {
      const { fire, missed, unrecordedBefore, next } = planFiring(
        rule("* * * * *", "Europe/Berlin"),
        policy,
        expected[0] ?? 0,
        now,
      );
      assert.deepEqual([...missed, ...fire.map(({ scheduledFor }) => scheduledFor)], expected);
      assert.equal(fire.length, policy === "all" ? 1_000 : 1);
      assert.equal(unrecordedBefore, null);
      assert.equal(next, Date.UTC(2026, 10, 1, 0, 1));
    }
  });

  it("names only the latest after years of a minutely schedule, and says since when", () => {
    const [dueAt, now] = [Date.UTC(2016, 0, 1), Date.UTC(2026, 0, 1, 0, 0, 30)];
    const { fire, missed, unrecordedBefore, next } = planFiring(rule("* * * * *"), "all", dueAt, now);
    assert.equal(fire.length, MAX_CATCH_UP);
    assert.equal(missed.length + fire.length, MAX_RECORDED);
    assert.equal(unrecordedBefore, missed[0]);
    assert.equal(fire.at(-1)?.scheduledFor, Date.UTC(2026, 0, 1));
    assert.equal(next, Date.UTC(2026, 0, 1, 0, 1));
  });

  it("finds the latest due times also when they are long past", () => {
    // Every minute of January, asked in December after years: the last 69 days hold none.
    const [dueAt, now] = [Date.UTC(2016, 0, 1), Date.UTC(2025, 11, 1)];
    const { fire, unrecordedBefore, next } = planFiring(rule("* * * 1 *"), "all", dueAt, now);
    assert.equal(fire.length, MAX_CATCH_UP);
    assert.equal(fire.at(-1)?.scheduledFor, Date.UTC(2025, 0, 31, 23, 59));
    assert.ok(unrecordedBefore !== null && unrecordedBefore <= Date.UTC(2025, 0, 1));
    assert.equal(next, Date.UTC(2026, 0, 1));
  });

  it("gives each due time one fate, whenever it is asked", (t) => {
    const expression = fc.constantFrom(
      "* * * * *",
      "*/7 * * * *",
      "30 * * * *",
      "30 2 * * *",
      "*/20 1-3 * * *",
      "0 0 1 * *",
    );
    const pauses = fc.array(fc.integer({ min: 1, max: 3 * DAY_MS }), { minLength: 1, maxLength: 5 });
    const start = fc.integer({ min: Date.UTC(2026, 2, 26), max: Date.UTC(2026, 9, 26) });
    holds(
      t,
      300,
      fc.property(
        expression,
        fc.constantFrom(...MISSED_POLICIES),
        start,
        pauses,
        (cron, policy, startMs, pausesMs) => {
          const schedule = rule(cron, "Europe/Berlin");
          const decided: number[] = [];
          let nowMs = startMs;
          let dueAt = nextFireTime(schedule, startMs);
          for (const pauseMs of pausesMs) {
            nowMs += pauseMs;
            if (dueAt === null) break;
            const { fire, missed, next } = planFiring(schedule, policy, dueAt, nowMs);
            decided.push(...missed, ...fire.map(({ scheduledFor }) => scheduledFor));
            for (const { scheduledFor, outcome } of fire)
              assert.equal(outcome, nowMs - scheduledFor > LATE_AFTER_MS ? "late" : "fired");
            if (policy === "skip") for (const { outcome } of fire) assert.equal(outcome, "fired");
            if (policy === "skip") for (const at of missed) assert.ok(nowMs - at > LATE_AFTER_MS);
            if (policy === "once" && missed.length > 0) assert.equal(fire.length, 1);
            assert.ok(fire.length <= MAX_CATCH_UP);
            dueAt = next;
          }
          const expected: number[] = [];
          for (
            let at = nextFireTime(schedule, startMs);
            at !== null && at <= nowMs;
            at = nextFireTime(schedule, at)
          )
            expected.push(at);
          assert.deepEqual(decided, expected);
        },
      ),
    );
  });
});

describe("firingsOf", () => {
  it("goes from the stored due time to the next one in steps that join, also where not every time gets a line", () => {
    const [dueAt, now] = [Date.UTC(2016, 0, 1), Date.UTC(2026, 0, 1, 0, 0, 30)];
    const firings = firingsOf(aSchedule(dueAt, { nextRunAt: dueAt, onMissed: "all" }), now);
    const ends = [dueAt, ...firings.map(({ nextRunAt }) => nextRunAt)];
    assert.equal(ends.pop(), Date.UTC(2026, 0, 1, 0, 1));
    assert.deepEqual(
      firings.map((firing) => firing.dueAt),
      ends,
    );
    // As heavy as a transaction may be, and no lighter: 1,000 lines, or 100 jobs.
    assert.ok(firings.every((firing) => weightOf(firing) <= MAX_WEIGHT));
    assert.ok(firings.length <= 110, `${firings.length} steps`);
    assert.equal(firings.flatMap(({ occurrences }) => occurrences).length, MAX_RECORDED);
  });

  it("takes the last due time away from a schedule that was to end before it", () => {
    const dueAt = Date.UTC(2026, 0, 1);
    const ended = aSchedule(dueAt, { nextRunAt: dueAt, endsAt: dueAt - 1 });
    assert.deepEqual(firingsOf(ended, dueAt), [{ dueAt, occurrences: [], nextRunAt: null }]);
  });
});
