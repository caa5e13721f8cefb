/** Fire times against two other opinions: a walk over every minute, and croner where it follows the same rules. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { Cron } from "croner";
import * as fc from "fast-check";
import { checkCron } from "../../src/schedules/cron-check.ts";
import { describeCron } from "../../src/schedules/describe.ts";
import { type FireTimes, nextFireTime, previewFireTimes } from "../../src/schedules/firing.ts";
import { agreedWithCroner, fireTimesByTheMinute, frequent, placesAndTimes, rare } from "./firing-oracle.ts";
import { holds } from "./firing-seeds.ts";

const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;

function always(cronExpr: string, timezone: string): FireTimes {
  return { cronExpr, timezone, startsAt: null, endsAt: null };
}

function comingTimes(schedule: FireTimes, afterMs: number, count: number): number[] {
  const found: number[] = [];
  for (
    let at = nextFireTime(schedule, afterMs);
    at !== null && found.length < count;
    at = nextFireTime(schedule, at)
  )
    found.push(at);
  return found;
}

// Croner looks for the end of a gap on the same day only; the difference is listed below.
const endsItsGapOnTheNextDay: ReadonlySet<string> = new Set(["Pacific/Apia", "Asia/Pyongyang"]);

describe("fire times, by other means", () => {
  it("are those that a walk over every minute finds, with their notes", (t) => {
    holds(
      t,
      150,
      fc.property(frequent, placesAndTimes, (expression, { timezone, nearMs }) => {
        const fromMs = Math.floor(nearMs / MINUTE_MS) * MINUTE_MS;
        const toMs = fromMs + 2.5 * DAY_MS;
        const expected = fireTimesByTheMinute(expression, timezone, fromMs, toMs);
        const schedule = { ...always(expression.text, timezone), endsAt: toMs - 1 };
        assert.equal(checkCron(expression.text)?.detail ?? null, null);
        assert.deepEqual(previewFireTimes(schedule, fromMs - 1, 10_000), expected);
      }),
    );
  });

  it("do not depend on where the question is asked from", (t) => {
    holds(
      t,
      2_000,
      fc.property(
        frequent,
        placesAndTimes,
        fc.integer({ min: 0, max: 3 * 1440 }),
        ({ text }, { timezone, nearMs }, minutes) => {
          const schedule = always(text, timezone);
          const next = nextFireTime(schedule, nearMs);
          const betweenMs = nearMs + minutes * MINUTE_MS;
          if (next !== null && betweenMs < next) assert.equal(nextFireTime(schedule, betweenMs), next);
        },
      ),
    );
  });

  it("fall on the right dates over years", (t) => {
    holds(
      t,
      300,
      fc.property(rare, fc.integer({ min: 1970, max: 2150 }), (expression, year) => {
        const fault = checkCron(expression.text);
        const expected: number[] = [];
        const fromMs = Date.UTC(year, 0, 1);
        const minuteOfDay = Number(/^\d+/.exec(expression.text)?.[0] ?? 0);
        for (let day = 0; day < 9 * 366 && expected.length < 5; day++) {
          const startMs = fromMs + day * DAY_MS;
          for (let hour = 0; hour < 24; hour++) {
            for (let minute = minuteOfDay; minute < 60; minute++) {
              const at = startMs + (hour * 60 + minute) * MINUTE_MS;
              if (expression.matches(at)) expected.push(at);
              else if (minute === minuteOfDay) break;
            }
          }
        }
        if (fault !== null) {
          assert.match(fault.detail, /never comes/);
          assert.deepEqual(expected, []);
        } else if (expected.length >= 5) {
          assert.deepEqual(comingTimes(always(expression.text, "UTC"), fromMs - 1, 5), expected.slice(0, 5));
        }
      }),
    );
  });

  it("are croner's for fixed times", (t) => {
    holds(
      t,
      400,
      fc.property(agreedWithCroner, placesAndTimes, ({ text }, { timezone, nearMs }) => {
        if (checkCron(text) !== null || endsItsGapOnTheNextDay.has(timezone)) return;
        const croner = new Cron(text, {
          timezone,
          mode: "5-part",
          fixedTimeRule: "no-wildcard",
          paused: true,
        });
        const expected = croner.nextRuns(8, new Date(nearMs)).map((date) => date.getTime());
        assert.deepEqual(comingTimes(always(text, timezone), nearMs, 8), expected);
      }),
    );
  });

  it("exist, and have a description, for every expression that passes the check", (t) => {
    holds(
      t,
      1_000,
      fc.property(fc.oneof(frequent, rare), ({ text }) => {
        if (checkCron(text) !== null) return;
        assert.notEqual(nextFireTime(always(text, "UTC"), Date.UTC(2026, 0, 1)), null);
        assert.match(describeCron(text), /\w/);
        assert.doesNotMatch(describeCron(text), /undefined|null|NaN/);
      }),
    );
  });
});

describe("where Errand and croner differ", () => {
  const differences: readonly {
    why: string;
    cron: string;
    zone: string;
    after: string;
    errand: readonly string[];
    croner: readonly string[];
  }[] = [
    {
      why: "croner drops a wildcard's times in the gap; Errand does so only where every hour has its run",
      cron: "*/30 2 * * *",
      zone: "Europe/Berlin",
      after: "2026-03-28T12:00Z",
      errand: ["2026-03-29T01:00:00.000Z"],
      croner: ["2026-03-30T00:00:00.000Z"],
    },
    {
      why: "all 24 hours are a wildcard for Errand however they are written, for croner only as an asterisk",
      cron: "30 0-23 * * *",
      zone: "Europe/Berlin",
      after: "2026-10-25T00:30Z",
      errand: ["2026-10-25T01:30:00.000Z"],
      croner: ["2026-10-25T02:30:00.000Z"],
    },
    {
      why: "a stepped range is a fixed time for Errand, as in vixie cron, and an interval for croner",
      cron: "0 1-3/1 * * *",
      zone: "Europe/Berlin",
      after: "2026-10-25T00:00Z",
      errand: ["2026-10-25T02:00:00.000Z"],
      croner: ["2026-10-25T01:00:00.000Z"],
    },
    {
      why: "a skipped day is a gap like any other; croner leaves its times out",
      cron: "0 1 * * *",
      zone: "Pacific/Apia",
      after: "2011-12-30T09:59Z",
      errand: ["2011-12-30T10:00:00.000Z"],
      croner: ["2011-12-30T11:00:00.000Z"],
    },
    {
      why: "so is one that ends at midnight",
      cron: "45 23 * * *",
      zone: "Asia/Pyongyang",
      after: "2018-05-04T00:00Z",
      errand: ["2018-05-04T15:00:00.000Z"],
      croner: ["2018-05-05T14:45:00.000Z"],
    },
    {
      why: "a day field that starts with an asterisk leaves the choice to the other one, as in vixie cron",
      cron: "0 0 */2 * MON",
      zone: "UTC",
      after: "2026-01-01T12:00Z",
      errand: ["2026-01-05T00:00:00.000Z", "2026-01-19T00:00:00.000Z"],
      croner: ["2026-01-03T00:00:00.000Z", "2026-01-05T00:00:00.000Z"],
    },
  ];
  for (const { why, cron, zone, after, errand, croner } of differences) {
    it(`${cron}: ${why}`, () => {
      const asText = (at: number): string => new Date(at).toISOString();
      assert.deepEqual(comingTimes(always(cron, zone), Date.parse(after), errand.length).map(asText), errand);
      const other = new Cron(cron, {
        timezone: zone,
        mode: "5-part",
        fixedTimeRule: "no-wildcard",
        paused: true,
      });
      assert.deepEqual(
        other.nextRuns(croner.length, new Date(after)).map((date) => date.toISOString()),
        croner,
      );
    });
  }
});
