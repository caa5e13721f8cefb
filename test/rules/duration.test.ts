/** Durations: what is one, how long it is, how it reads. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { describeDuration, durationMs, parseDuration } from "../../src/base/duration.ts";

test("a whole number and one unit", () => {
  const good: [string, number][] = [
    ["0s", 0],
    ["30s", 30_000],
    ["5m", 300_000],
    ["1h", 3_600_000],
    ["1d", 86_400_000],
    ["365d", 31_536_000_000],
    ["007s", 7_000],
  ];
  for (const [text, ms] of good) assert.deepEqual([parseDuration(text), durationMs(text)], [ms, ms]);
  for (const text of [
    "",
    "5",
    "s",
    "-5s",
    "1.5h",
    "5 m",
    "5M",
    "1h30m",
    "5ms",
    " 5s",
    "5s ",
    "5s\n",
    "1w",
    "٣s",
    "9999999999s",
  ])
    assert.equal(parseDuration(text), null, JSON.stringify(text));
  assert.throws(() => durationMs("soon"), /soon/);
});

test("reads in the unit that fits", () => {
  const texts: [number, string][] = [
    [15, "15 ms"],
    [1_500, "1.5 s"],
    [1_234, "1.2 s"],
    [20_000, "20 s"],
    [80_000, "80 s"],
    [120_000, "2 min"],
    [300_000, "5 min"],
    [3_600_000, "60 min"],
    [7_200_000, "2 h"],
    [259_200_000, "3 days"],
  ];
  for (const [ms, text] of texts) assert.equal(describeDuration(ms), text);
});
