/** When schedules fire on the days on which clocks change: the table of the promise in CONTRACT §5 and §10. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { previewFireTimes } from "../../src/schedules/firing.ts";
import { rule, times } from "./firing-table.ts";

const CLOCK_CHANGES: readonly {
  why: string;
  cron: string;
  zone: string;
  after: string;
  times: readonly string[];
}[] = [
  // Berlin, 2026-03-29: 02:00 is followed by 03:00.
  {
    why: "a time inside the gap fires once, as the gap ends",
    cron: "30 2 * * *",
    zone: "Europe/Berlin",
    after: "2026-03-28T00:00Z",
    times: ["2026-03-28T02:30:00+01:00", "2026-03-29T03:00:00+02:00 dst_gap", "2026-03-30T02:30:00+02:00"],
  },
  {
    why: "several times in one gap fire once",
    cron: "0,20,40 2 * * *",
    zone: "Europe/Berlin",
    after: "2026-03-28T01:41Z",
    times: ["2026-03-29T03:00:00+02:00 dst_gap", "2026-03-30T02:00:00+02:00"],
  },
  {
    why: "a skipped time and the time at which the gap ends are one firing",
    cron: "0 2,3 * * *",
    zone: "Europe/Berlin",
    after: "2026-03-28T12:00Z",
    times: ["2026-03-29T03:00:00+02:00 dst_gap", "2026-03-30T02:00:00+02:00"],
  },
  {
    why: "a time that is not in the gap knows nothing of it",
    cron: "0 3 * * *",
    zone: "Europe/Berlin",
    after: "2026-03-28T12:00Z",
    times: ["2026-03-29T03:00:00+02:00", "2026-03-30T03:00:00+02:00"],
  },
  {
    why: "an hourly schedule fires each real hour",
    cron: "30 * * * *",
    zone: "Europe/Berlin",
    after: "2026-03-28T23:45Z",
    times: ["2026-03-29T01:30:00+01:00", "2026-03-29T03:30:00+02:00", "2026-03-29T04:30:00+02:00"],
  },
  {
    why: "so does one that names all the hours",
    cron: "30 0-23 * * *",
    zone: "Europe/Berlin",
    after: "2026-03-28T23:45Z",
    times: ["2026-03-29T01:30:00+01:00", "2026-03-29T03:30:00+02:00"],
  },
  {
    why: "every two hours: the time in the gap is not dropped",
    cron: "0 */2 * * *",
    zone: "Europe/Berlin",
    after: "2026-03-28T22:30Z",
    times: ["2026-03-29T00:00:00+01:00", "2026-03-29T03:00:00+02:00 dst_gap", "2026-03-29T04:00:00+02:00"],
  },
  {
    why: "a nightly quarter-hourly schedule whose hour is skipped fires once",
    cron: "*/15 2 * * *",
    zone: "Europe/Berlin",
    after: "2026-03-28T12:00Z",
    times: ["2026-03-29T03:00:00+02:00 dst_gap", "2026-03-30T02:00:00+02:00"],
  },
  {
    why: "the date of the gap counts, not only its time",
    cron: "30 2 30 3 *",
    zone: "Europe/Berlin",
    after: "2026-03-28T12:00Z",
    times: ["2026-03-30T02:30:00+02:00"],
  },

  // Berlin, 2026-10-25: 02:59 is followed by 02:00.
  {
    why: "a fixed time in the repeated hour fires the first time only",
    cron: "30 2 * * *",
    zone: "Europe/Berlin",
    after: "2026-10-24T12:00Z",
    times: ["2026-10-25T02:30:00+02:00 dst_repeat", "2026-10-26T02:30:00+01:00"],
  },
  {
    why: "also when the question is asked between the two",
    cron: "30 2 * * *",
    zone: "Europe/Berlin",
    after: "2026-10-25T00:45Z",
    times: ["2026-10-26T02:30:00+01:00"],
  },
  {
    why: "fixed times in a list and a range are fixed times",
    cron: "0,30 1-3 * * *",
    zone: "Europe/Berlin",
    after: "2026-10-24T23:15Z",
    times: [
      "2026-10-25T01:30:00+02:00",
      "2026-10-25T02:00:00+02:00 dst_repeat",
      "2026-10-25T02:30:00+02:00 dst_repeat",
      "2026-10-25T03:00:00+01:00",
    ],
  },
  {
    why: "an hourly schedule fires each real hour, so twice at 02:30",
    cron: "30 * * * *",
    zone: "Europe/Berlin",
    after: "2026-10-24T23:45Z",
    times: [
      "2026-10-25T02:30:00+02:00 dst_repeat",
      "2026-10-25T02:30:00+01:00 dst_repeat",
      "2026-10-25T03:30:00+01:00",
    ],
  },
  {
    why: "every two hours is an interval, though its minute is fixed: both times",
    cron: "30 */2 * * *",
    zone: "Europe/Berlin",
    after: "2026-10-24T22:45Z",
    times: [
      "2026-10-25T02:30:00+02:00 dst_repeat",
      "2026-10-25T02:30:00+01:00 dst_repeat",
      "2026-10-25T04:30:00+01:00",
    ],
  },
  {
    why: "the second time is found also where the next first time is a year away",
    cron: "*/30 2 25 10 *",
    zone: "Europe/Berlin",
    after: "2026-10-25T00:45Z",
    times: [
      "2026-10-25T02:00:00+01:00 dst_repeat",
      "2026-10-25T02:30:00+01:00 dst_repeat",
      "2027-10-25T02:00:00+02:00",
    ],
  },
  {
    why: "a step of the minutes is a wildcard",
    cron: "*/30 2 * * *",
    zone: "Europe/Berlin",
    after: "2026-10-24T12:00Z",
    times: [
      "2026-10-25T02:00:00+02:00 dst_repeat",
      "2026-10-25T02:30:00+02:00 dst_repeat",
      "2026-10-25T02:00:00+01:00 dst_repeat",
      "2026-10-25T02:30:00+01:00 dst_repeat",
      "2026-10-26T02:00:00+01:00",
    ],
  },

  {
    why: "New York, spring",
    cron: "30 2 * * *",
    zone: "America/New_York",
    after: "2026-03-07T12:00Z",
    times: ["2026-03-08T03:00:00-04:00 dst_gap", "2026-03-09T02:30:00-04:00"],
  },
  {
    why: "New York, autumn",
    cron: "30 1 * * *",
    zone: "America/New_York",
    after: "2026-10-31T12:00Z",
    times: ["2026-11-01T01:30:00-04:00 dst_repeat", "2026-11-02T01:30:00-05:00"],
  },
  {
    why: "Lord Howe shifts by half an hour: 02:15 does not exist (cron-parser loses this day)",
    cron: "15 2 * * *",
    zone: "Australia/Lord_Howe",
    after: "2026-10-03T00:00Z",
    times: ["2026-10-04T02:30:00+11:00 dst_gap", "2026-10-05T02:15:00+11:00"],
  },
  {
    why: "02:45 does",
    cron: "45 2 * * *",
    zone: "Australia/Lord_Howe",
    after: "2026-10-03T00:00Z",
    times: ["2026-10-04T02:45:00+11:00", "2026-10-05T02:45:00+11:00"],
  },
  {
    why: "and in autumn 01:30 to 01:59 comes twice",
    cron: "45 1 * * *",
    zone: "Australia/Lord_Howe",
    after: "2026-04-04T00:00Z",
    times: ["2026-04-05T01:45:00+11:00 dst_repeat", "2026-04-06T01:45:00+10:30"],
  },
  {
    why: "each real half hour, there too",
    cron: "*/30 * * * *",
    zone: "Australia/Lord_Howe",
    after: "2026-10-03T14:45Z",
    times: ["2026-10-04T01:30:00+10:30", "2026-10-04T02:30:00+11:00", "2026-10-04T03:00:00+11:00"],
  },
  {
    why: "São Paulo had its gap at midnight, so the day began at 01:00",
    cron: "0 0 * * *",
    zone: "America/Sao_Paulo",
    after: "2018-11-03T12:00Z",
    times: ["2018-11-04T01:00:00-02:00 dst_gap", "2018-11-05T00:00:00-02:00"],
  },
  {
    why: "and repeated the last hour of a day",
    cron: "30 23 * * *",
    zone: "America/Sao_Paulo",
    after: "2019-02-16T12:00Z",
    times: ["2019-02-16T23:30:00-02:00 dst_repeat", "2019-02-17T23:30:00-03:00"],
  },
  {
    why: "Casablanca leaves summer time for Ramadan",
    cron: "30 2 * * *",
    zone: "Africa/Casablanca",
    after: "2026-02-14T12:00Z",
    times: ["2026-02-15T02:30:00+01:00 dst_repeat", "2026-02-16T02:30:00+00:00"],
  },
  {
    why: "and comes back after it",
    cron: "30 2 * * *",
    zone: "Africa/Casablanca",
    after: "2026-03-21T12:00Z",
    times: ["2026-03-22T03:00:00+01:00 dst_gap", "2026-03-23T02:30:00+01:00"],
  },
  {
    why: "Samoa left out 30 December 2011; all of that day's times are one firing",
    cron: "0 9,12,15 * * *",
    zone: "Pacific/Apia",
    after: "2011-12-30T01:30Z",
    times: ["2011-12-31T00:00:00+14:00 dst_gap", "2011-12-31T09:00:00+14:00"],
  },
  {
    why: "and nothing fires twice because of it",
    cron: "0 0 * * *",
    zone: "Pacific/Apia",
    after: "2011-12-29T09:30Z",
    times: ["2011-12-29T00:00:00-10:00", "2011-12-31T00:00:00+14:00 dst_gap", "2012-01-01T00:00:00+14:00"],
  },
  {
    why: "Troll shifts by two hours",
    cron: "30 1,2 * * *",
    zone: "Antarctica/Troll",
    after: "2026-03-28T12:00Z",
    times: ["2026-03-29T03:00:00+02:00 dst_gap", "2026-03-30T01:30:00+02:00"],
  },
  {
    why: "Nepal and India have odd offsets and no summer time",
    cron: "0 9 * * *",
    zone: "Asia/Kathmandu",
    after: "2026-03-28T12:00Z",
    times: ["2026-03-29T09:00:00+05:45", "2026-03-30T09:00:00+05:45"],
  },
  {
    why: "India",
    cron: "0 9 * * *",
    zone: "Asia/Kolkata",
    after: "2026-03-28T12:00Z",
    times: ["2026-03-29T09:00:00+05:30"],
  },
  {
    why: "names in any letter case",
    cron: "0 9 * * *",
    zone: "europe/berlin",
    after: "2026-07-01T00:00Z",
    times: ["2026-07-01T09:00:00+02:00"],
  },
];

describe("a change of the clock", () => {
  for (const example of CLOCK_CHANGES) {
    it(`${example.cron} in ${example.zone}: ${example.why}`, () => {
      assert.deepEqual(
        times(rule(example.cron, example.zone), example.after, example.times.length),
        example.times,
      );
    });
  }

  for (const [zone, day] of [
    ["Europe/Berlin", "2026-03-29"],
    ["Europe/Berlin", "2026-10-25"],
    ["America/New_York", "2026-03-08"],
    ["America/New_York", "2026-11-01"],
  ] as const) {
    it(`0 * * * * and */30 * * * * keep their real distance in ${zone} on ${day}`, () => {
      for (const [cron, distanceMs] of [
        ["0 * * * *", 3_600_000],
        ["*/30 * * * *", 1_800_000],
      ] as const) {
        const found = previewFireTimes(rule(cron, zone), Date.parse(`${day}T00:00Z`) - 86_400_000, 96).map(
          ({ at }) => at,
        );
        for (let i = 1; i < found.length; i++)
          assert.equal((found[i] ?? 0) - (found[i - 1] ?? 0), distanceMs);
      }
    });
  }
});
