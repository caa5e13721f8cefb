/** What the tables of fire times are written with: a schedule, and its times as a person writes them. */
import assert from "node:assert/strict";
import { type FireTimes, previewFireTimes } from "../../src/schedules/firing.ts";

/** Runs from `startsAt` to `endsAt`, both RFC 3339. */
export function rule(
  cronExpr: string,
  timezone: string,
  bounds: { startsAt?: string; endsAt?: string } = {},
): FireTimes {
  return {
    cronExpr,
    timezone,
    startsAt: bounds.startsAt === undefined ? null : Date.parse(bounds.startsAt),
    endsAt: bounds.endsAt === undefined ? null : Date.parse(bounds.endsAt),
  };
}

/** The coming times as a person writes them: "2026-03-29T03:00:00+02:00 dst_gap". */
export function times(schedule: FireTimes, after: string, count: number): string[] {
  return previewFireTimes(schedule, Date.parse(after), count).map(({ at, local, note }) => {
    assert.equal(Date.parse(local), at, "local is the same instant");
    return note === undefined ? local : `${local} ${note}`;
  });
}
