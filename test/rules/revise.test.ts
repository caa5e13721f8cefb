/** What a change does to the next run of a schedule, and which next runs are to be put right. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { firstRun, isDue, rearm, revise } from "../../src/schedules/revise.ts";
import { aSchedule } from "../support/factories.ts";

const NOW = Date.parse("2026-01-05T00:00:30Z");
const NEXT = Date.parse("2026-01-05T00:01:00Z");

test("a due time is undecided from its very millisecond on", () => {
  const at = (nextRunAt: number | null) => isDue(aSchedule(NOW, { nextRunAt }), NOW);
  assert.deepEqual([at(NOW + 1), at(NOW), at(NOW - 1), at(null)], [false, true, true, false]);
});

test("a new schedule runs first at its next time, never at one that is over; not while it is paused or unsound", () => {
  const first = (fields = {}) => firstRun(aSchedule(NOW, fields), NOW);
  assert.equal(first(), NEXT);
  for (const fields of [{ paused: true }, { cronExpr: "99 * * * *" }, { timezone: "Mars/Olympus" }])
    assert.equal(first(fields), null, JSON.stringify(fields));
});

test("a change keeps the next run unless it changes what decides it; the same again changes nothing", () => {
  const stored = aSchedule(NOW, { nextRunAt: NEXT + 7, updatedAt: 1 });
  assert.equal(revise(stored, { ...stored }, NOW), stored);
  const renamed = revise(stored, { ...stored, name: "other" }, NOW);
  assert.deepEqual([renamed.nextRunAt, renamed.updatedAt], [NEXT + 7, NOW]);
  const hour = 3_600_000;
  const changes: [object, number | null][] = [
    [{ cronExpr: "30 * * * *" }, Date.parse("2026-01-05T00:30:00Z")],
    [{ timezone: "Europe/Berlin" }, NEXT],
    [{ startsAt: NEXT + hour }, NEXT + hour],
    [{ endsAt: NOW }, null],
    [{ paused: true }, null],
  ];
  for (const [fields, next] of changes)
    assert.equal(revise(stored, { ...stored, ...fields }, NOW).nextRunAt, next, JSON.stringify(fields));
});

describe("put right is", () => {
  const rearmed = (fields = {}) => {
    const schedule = aSchedule(NOW, fields);
    const after = rearm(schedule, NOW);
    return after === schedule ? "as it was" : after.nextRunAt;
  };

  test("a next run that is missing or too late", () => {
    assert.equal(rearmed({ nextRunAt: null }), NEXT);
    assert.equal(rearmed({ nextRunAt: NEXT + 60_000 }), NEXT);
  });

  test("nothing else: one that is right, due, promised earlier, paused or over", () => {
    for (const fields of [
      { nextRunAt: NEXT },
      { nextRunAt: NOW - 1 },
      { nextRunAt: NEXT - 1 },
      { nextRunAt: null, paused: true },
      { nextRunAt: null, endsAt: NOW },
    ])
      assert.equal(rearmed(fields), "as it was", JSON.stringify(fields));
  });
});
