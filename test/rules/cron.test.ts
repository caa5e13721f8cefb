/** Which cron expressions and time zones are taken, and what the others are told. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import * as fc from "fast-check";
import { checkCron } from "../../src/schedules/cron-check.ts";
import { describeCron } from "../../src/schedules/describe.ts";
import { nextFireTime } from "../../src/schedules/firing.ts";
import { checkTimezone } from "../../src/schedules/zone.ts";
import { holds } from "./firing-seeds.ts";

// Each with the English of it.
const TAKEN: readonly (readonly [expression: string, description: string])[] = [
  ["* * * * *", "Every minute"],
  ["*/15 * * * *", "Every 15 minutes"],
  ["*/60 * * * *", "Every 60 minutes"],
  ["0 9 * * MON-FRI", "At 09:00, Monday through Friday"],
  ["0 9 * * mon-fri/2", "At 09:00, every 2 days of the week, Monday through Friday"],
  ["30 8,20 * * *", "At 08:30 and 20:30"],
  ["05 04 * * *", "At 04:05"],
  ["0 0 1 JAN,jul *", "At 00:00, on day 1 of the month, only in January and July"],
  ["0 0 * * 0", "At 00:00, only on Sunday"],
  ["0 0 * * 7", "At 00:00, only on Sunday"],
  ["0 0 * * 07", "At 00:00, only on Sunday"],
  ["0 0 * * 05L", "At 00:00, on the last Friday of the month"],
  ["0 0 * * 0,7", "At 00:00, only on Sunday"],
  ["0 0 * * 5-7", "At 00:00, Friday through Sunday"],
  ["0 0 1-5,3 * *", "At 00:00, on day 1 through 5 and 3 of the month"],
  ["0 0 13 * 5", "At 00:00, on day 13 of the month, and on Friday"],
  ["0 0 */2 * 1", "At 00:00, every 2 days in a month, only on Monday"],
  ["0 0 1 * SUN,*", "At 00:00, on day 1 of the month, and on Sunday and Sunday through Saturday"],
  ["0 0 * JAN,* *", "At 00:00, only in January and January through December"],
  ["0,* 9 * * *", "At 0 and 0 through 59 minutes past the hour, at 09:00"],
  ["0 0 2 * *,SUN", "At 00:00, on day 2 of the month, only on Sunday through Saturday and Sunday"],
  ["0 0 L * *", "At 00:00, on the last day of the month"],
  ["0 0 * * FRIL", "At 00:00, on the last Friday of the month"],
  ["0 0 * * 7#1", "At 00:00, on the first Sunday of the month"],
  ["0 0 * * FRI#2", "At 00:00, on the second Friday of the month"],
  ["0 0 29 2 *", "At 00:00, on day 29 of the month, only in February"],
  ["0 0 30 2 1", "At 00:00, on day 30 of the month, and on Monday, only in February"],
  ["  0\t0  * * * \n", "At 00:00"],
  ["@hourly", "Every hour"],
  ["@daily", "At 00:00"],
  ["@midnight", "At 00:00"],
  ["@weekly", "At 00:00, only on Sunday"],
  ["@monthly", "At 00:00, on day 1 of the month"],
  ["@yearly", "At 00:00, on day 1 of the month, only in January"],
  ["@Annually", "At 00:00, on day 1 of the month, only in January"],
];

// Each with a part of the answer that says what would be right.
const REFUSED: readonly (readonly [expression: string, advice: string])[] = [
  ["", "Write five fields"],
  [" \n", "Write five fields"],
  ["* * * *", "five fields, this has 4"],
  ["0 0 9 * * *", 'drop the seconds field: "0 9 * * *"'],
  ["0 9 * * 1 2026", 'drop the year field: "0 9 * * 1"'],
  ["0 9 * * 1 2026-2030", 'drop the year field: "0 9 * * 1"'],
  ["0 9 ? * MON *", 'drop the year field: "0 9 * * MON"'],
  ["0 0 12 ? * MON", 'drop the seconds field: "0 12 * * MON"'],
  // Quartz counts weekdays from 1, so the same digits would be another day here.
  ["0 0 12 ? * 2", "drop the seconds field: minute, hour"],
  ["0 0 9 * * * 2026", 'drop the seconds and the year field: "0 9 * * *"'],
  ["TZ=Europe/Berlin 0 9 * * *", 'the expression is "0 9 * * *"'],
  ["TZ=Europe/Berlin 0 9 *", "write five fields: minute, hour"],
  ["60 * * * *", 'minute field is "60": 60 is out of range; use 0 to 59'],
  ["* 24 * * *", "use 0 to 23"],
  ["* * 0 * *", "use 1 to 31"],
  ["* * 32 * *", "use 1 to 31"],
  ["* * * 13 *", "use 1 to 12"],
  ["* * * * 8", "use 0 to 7"],
  ["5-99 * * * *", "99 is out of range"],
  ["*/90 * * * *", "use at most 60"],
  ["* */25 * * *", "use at most 24"],
  ["0 0 * * 0-7/8", "use at most 7"],
  ["10-20/12 * * * *", "use at most 11"],
  ["*/0 * * * *", "whole number from 1"],
  ["*/-5 * * * *", "whole number from 1"],
  ["*/ * * * *", "whole number from 1"],
  ["5/15 * * * *", 'write "5-59/15"'],
  ["50/20 * * * *", 'write "50", or "*/20"'],
  ["0 0 * * 7-2", 'write "0-2"'],
  ["0 0 * * fril", 'write "FRIL"'],
  ["0 0 * H *", "such as 12"],
  ["0 22-2 * * *", 'write "22-23,0-2"'],
  ["0 0 * NOV-FEB *", 'write "NOV-DEC,JAN-FEB"'],
  ["0 0 * * FRI-SUN", 'write "FRI-SAT,SUN"'],
  ["0 0 ? * 1", 'write "*"'],
  ["0 0 15W * *", "MON-FRI"],
  ["0 0 LW * *", "MON-FRI"],
  ["0 0 L-3 * *", "stands by itself"],
  ["0 0 l * *", 'capital "L"'],
  ["0 0 * * L", '"5L"'],
  ["0 0 * * 5#6", "1 to 5"],
  ["0 0 * * 5#2.5", "1 to 5"],
  ["0 0 * * *#2", "cannot be read"],
  ["0 0 * * 8L", "cannot be read"],
  ["H * * * *", "fixed value"],
  ["~ * * * *", "fixed value"],
  ["1,,2 * * * *", "1,2,3"],
  [", * * * *", "1,2,3"],
  ["1-2-3 * * * *", '"1-5"'],
  ["1/2/3 * * * *", '"1-5"'],
  ["*5 * * * *", "cannot be read"],
  ["1.5 * * * *", "cannot be read"],
  ["+5 * * * *", "cannot be read"],
  ["1e1 * * * *", "cannot be read"],
  ["0x5 * * * *", "cannot be read"],
  ["MON * * * *", "cannot be read"],
  ["0 0 * JANFEB *", "JAN to DEC"],
  ["0 0 * * MONDAY", "SUN to SAT"],
  ["0 0 30 2 *", "never comes"],
  ["0 0 31 4,6,9,11 *", "never comes"],
  ["0 0 30 2 */2", "never comes"],
  ["@reboot", "fires by the clock"],
  ["@every 5m", '"*/5 * * * *"'],
  ["@weekdays", "@hourly, @daily"],
  ["0 0 1–5 * *", "plain ASCII"],
  ["0 ٣ * * *", "plain ASCII"],
  ["0 0\n* * *", "line break"],
  ["0 0 * * *\u0000", "plain ASCII"],
  [`${"0,".repeat(300)}0 * * * *`, "at most 512"],
];

const FIELD_NAMES = ["minute", "hour", "day-of-month", "month", "day-of-week"];

/** Whole expressions that are advised are taken, and a field that is advised is not refused in its turn. */
function assertSuggestionsHold(expression: string): void {
  const detail = checkCron(expression)?.detail;
  if (detail === undefined) return;
  const [, name, told = ""] = /^The (\S+) field is ".*?": (.*)$/.exec(detail) ?? [];
  if (name !== undefined) {
    const [advice = ""] = /(?:write|such as) .*$/.exec(told) ?? [];
    for (const [, quoted, bare] of advice.matchAll(/"([^"]*)"|such as (\d+)/g)) {
      const fields = expression.trim().split(/[ \t]+/);
      fields[FIELD_NAMES.indexOf(name)] = quoted ?? bare ?? "";
      const next = checkCron(fields.join(" "))?.detail ?? "";
      assert.ok(!next.startsWith(`The ${name} field`), `${detail} But then: ${next}`);
    }
    return;
  }
  for (const [, suggested = ""] of detail.matchAll(/(?:: |is |[Ww]rite |example )"([^"]*)"/g))
    assert.equal(checkCron(suggested), null, detail);
}

describe("a cron expression", () => {
  for (const [expression, description] of TAKEN) {
    it(`${JSON.stringify(expression)} is taken, and fires`, () => {
      assert.equal(checkCron(expression), null);
      assert.equal(describeCron(expression), description);
      const schedule = { cronExpr: expression, timezone: "UTC", startsAt: null, endsAt: null };
      assert.notEqual(nextFireTime(schedule, Date.UTC(2026, 0, 1)), null);
    });
  }

  for (const [expression, advice] of REFUSED) {
    it(`${JSON.stringify(expression.slice(0, 40))} is refused: … ${advice}`, () => {
      const fault = checkCron(expression);
      assert.equal(fault?.code, "invalid_cron");
      assert.ok(fault.detail.includes(advice), fault.detail);
      assert.match(fault.detail, /^["@A-Z].*\.$/s);
    });
  }

  for (const [expression] of [
    ...REFUSED,
    ["@every 0m"],
    ["@every 60m"],
    ["TZ=UTC @daily"],
    ["TZ=UTC"],
  ] as const)
    it(`${JSON.stringify(expression.slice(0, 40))} is refused with suggestions that are themselves right`, () => {
      assertSuggestionsHold(expression);
    });

  it("of any other text gets an answer, and never an exception; what it suggests is itself right", (t) => {
    const piece = fc.constantFrom(
      "*",
      "/",
      "-",
      ",",
      "#",
      "L",
      "W",
      "?",
      "0",
      "1",
      "5",
      "7",
      "07",
      "29",
      "31",
      "59",
      "60",
      "MON",
      "FEB",
      " ",
      " ",
      " ",
    );
    const expression = fc.oneof(
      fc.string({ maxLength: 40 }),
      fc.array(piece, { maxLength: 14 }).map((pieces) => pieces.join("")),
      fc
        .array(
          fc.array(
            piece.filter((p) => p !== " "),
            { minLength: 1, maxLength: 4 },
          ),
          { minLength: 5, maxLength: 7 },
        )
        .map((fields) => fields.map((f) => f.join("")).join(" ")),
    );
    holds(
      t,
      5000,
      fc.property(expression, (text) => {
        assertSuggestionsHold(text);
        if (checkCron(text) !== null) return;
        assert.notEqual(
          nextFireTime(
            { cronExpr: text, timezone: "UTC", startsAt: null, endsAt: null },
            Date.UTC(2026, 0, 1),
          ),
          null,
        );
        assert.match(describeCron(text), /^(?!.*undefined).*\w/);
      }),
    );
  });
});

describe("a time zone", () => {
  for (const name of [
    "UTC",
    "utc",
    "Europe/Berlin",
    "europe/berlin",
    "Asia/Kolkata",
    "Asia/Calcutta",
    "Europe/Kyiv",
    "US/Pacific",
    "Etc/GMT+2",
    "GMT",
    "GMT0",
    "EST5EDT",
    "EST",
    "CET",
    "GB",
    "America/Argentina/Buenos_Aires",
  ]) {
    it(`${name} is taken`, () => {
      assert.equal(checkTimezone(name), null);
    });
  }

  const refused: readonly (readonly [name: string, advice: string])[] = [
    ["", "Use UTC or an IANA name"],
    [" ", "Use UTC or an IANA name"],
    ["+02:00", "IANA name such as Europe/Berlin"],
    ["+0200", "IANA name such as Europe/Berlin"],
    ["-05", "IANA name such as Europe/Berlin"],
    ["UTC+2", "IANA name such as Europe/Berlin"],
    ["GMT+02:00", "IANA name such as Europe/Berlin"],
    ["Z", "or UTC"],
    ["BST", "abbreviations"],
    ["IST", "abbreviations"],
    ["PST", "abbreviations"],
    ["SystemV/PST8", "not an IANA time zone"],
    ["Mars/Olympus", "not an IANA time zone"],
    ["Local", "not an IANA time zone"],
    ["Berlin", "Did you mean Europe/Berlin?"],
    ["America/NewYork", "Did you mean America/New_York?"],
    ["Europe/Berlin ", "Did you mean Europe/Berlin?"],
    ["Europe/Berlin\u0000", "Did you mean Europe/Berlin?"],
    ["x".repeat(10_000), "not an IANA time zone"],
  ];
  for (const [name, advice] of refused) {
    it(`${JSON.stringify(name.slice(0, 40))} is refused: … ${advice}`, () => {
      const fault = checkTimezone(name);
      assert.equal(fault?.code, "invalid_timezone");
      assert.ok(fault.detail.includes(advice), fault.detail);
      assert.ok(fault.detail.length < 250);
    });
  }

  it("that Intl lists is always taken", () => {
    for (const name of Intl.supportedValuesOf("timeZone")) assert.equal(checkTimezone(name), null, name);
  });
});
