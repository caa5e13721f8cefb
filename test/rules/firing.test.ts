/** When schedules fire: dates that are rare, and the bounds of a schedule. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { nextFireTime } from "../../src/schedules/firing.ts";
import { rule, times } from "./firing-table.ts";

const RARE: readonly { cron: string; after: string; times: readonly string[] }[] = [
  { cron: "0 0 29 2 *", after: "2026-01-01T00:00Z", times: ["2028-02-29", "2032-02-29"] },
  { cron: "0 0 29 2 *", after: "2096-03-01T00:00Z", times: ["2104-02-29"] },
  { cron: "0 0 * 2 1#5", after: "2072-03-01T00:00Z", times: ["2112-02-29"] },
  {
    cron: "0 0 13 * 5",
    after: "2026-02-06T00:00Z",
    times: ["2026-02-13", "2026-02-20", "2026-02-27", "2026-03-06", "2026-03-13"],
  },
  {
    cron: "0 0 */10 * 1",
    after: "2026-01-01T00:00Z",
    times: ["2026-05-11", "2026-06-01", "2026-08-31", "2026-09-21"],
  },
  { cron: "0 0 1-7 * */7", after: "2026-01-01T00:00Z", times: ["2026-01-04", "2026-02-01", "2026-03-01"] },
  {
    cron: "0 0 L * *",
    after: "2028-01-01T00:00Z",
    times: ["2028-01-31", "2028-02-29", "2028-03-31", "2028-04-30"],
  },
  { cron: "0 0 15,L * *", after: "2026-02-01T00:00Z", times: ["2026-02-15", "2026-02-28", "2026-03-15"] },
  { cron: "0 0 * * FRIL", after: "2026-01-01T00:00Z", times: ["2026-01-30", "2026-02-27", "2026-03-27"] },
  {
    cron: "0 0 * * TUE#2,THU#4",
    after: "2026-01-01T00:00Z",
    times: ["2026-01-13", "2026-01-22", "2026-02-10", "2026-02-26"],
  },
  { cron: "0 0 * * SUN", after: "2026-01-01T00:00Z", times: ["2026-01-04"] },
  { cron: "0 0 * * 7", after: "2026-01-01T00:00Z", times: ["2026-01-04"] },
  {
    cron: "0 0 * * 5-7",
    after: "2026-01-01T00:00Z",
    times: ["2026-01-02", "2026-01-03", "2026-01-04", "2026-01-09"],
  },
  { cron: "0 0 31 * *", after: "2026-01-31T00:00Z", times: ["2026-03-31", "2026-05-31"] },
  { cron: "0 0 30 2,3 *", after: "2026-01-01T00:00Z", times: ["2026-03-30", "2027-03-30"] },
  { cron: "@weekly", after: "2026-01-01T00:00Z", times: ["2026-01-04"] },
  { cron: "@monthly", after: "2026-01-01T00:00Z", times: ["2026-02-01"] },
  { cron: "@yearly", after: "2026-01-01T00:00Z", times: ["2027-01-01"] },
];

describe("dates", () => {
  for (const example of RARE) {
    it(`${example.cron} after ${example.after}`, () => {
      const found = times(rule(example.cron, "UTC"), example.after, example.times.length);
      assert.deepEqual(
        found,
        example.times.map((day) => `${day}T00:00:00+00:00`),
      );
    });
  }
});

describe("nextFireTime", () => {
  const hourly = "0 * * * *";
  const at = Date.parse("2026-05-01T10:00Z");

  it("is strictly after the instant, to the millisecond", () => {
    assert.equal(nextFireTime(rule(hourly, "UTC"), at - 1), at);
    assert.equal(nextFireTime(rule(hourly, "UTC"), at), at + 3_600_000);
    assert.equal(nextFireTime(rule(hourly, "UTC"), at + 0.5), at + 3_600_000);
  });

  it("starts no earlier than startsAt, which may fire itself", () => {
    assert.equal(nextFireTime(rule(hourly, "UTC", { startsAt: "2026-05-01T10:00Z" }), 0), at);
    assert.equal(nextFireTime(rule(hourly, "UTC", { startsAt: "2026-05-01T09:00:01Z" }), 0), at);
    assert.equal(nextFireTime(rule(hourly, "UTC", { startsAt: "2020-01-01T00:00Z" }), at - 1), at);
  });

  it("ends with endsAt, which may fire itself", () => {
    const ending = rule(hourly, "UTC", { endsAt: "2026-05-01T10:00Z" });
    assert.equal(nextFireTime(ending, at - 1), at);
    assert.equal(nextFireTime(ending, at), null);
    assert.deepEqual(times(ending, "2026-05-01T07:30Z", 10), [
      "2026-05-01T08:00:00+00:00",
      "2026-05-01T09:00:00+00:00",
      "2026-05-01T10:00:00+00:00",
    ]);
  });

  it("is null when no time is left before the year 10000", () => {
    assert.equal(nextFireTime(rule("0 0 29 2 *", "UTC"), Date.UTC(9996, 2, 1)), null);
    assert.equal(nextFireTime(rule("@yearly", "UTC"), Date.UTC(9999, 5, 1)), null);
    assert.equal(nextFireTime(rule(hourly, "UTC"), Date.UTC(10_000, 0, 1)), null);
    assert.equal(nextFireTime(rule(hourly, "UTC"), 9e15), null);
  });

  it("works where an offset has seconds", () => {
    // Monrovia kept -0:44:30 until 1972.
    assert.equal(
      nextFireTime(rule("0 12 * * *", "Africa/Monrovia"), Date.UTC(1971, 0, 1)),
      Date.UTC(1971, 0, 1, 12, 44, 30),
    );
  });
});
