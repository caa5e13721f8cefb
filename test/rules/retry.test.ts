/** When a failure is tried again: the backoff, `retry_delays`, `Retry-After`, `no_retry_on`. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import * as fc from "fast-check";
import { backoffMs, finalBecause, retryAfterMs, retryWaitMs } from "../../src/jobs/retry.ts";
import { failure, response } from "../support/factories.ts";

const RULES = { maxAttempts: 3, timeout: "30s", retryDelays: null, noRetryOn: [] };
const NOW = Date.parse("2026-01-05T00:00:00Z");
const HOUR = 3_600_000;

describe("backoff", () => {
  test("20 s, 40 s, 80 s … 1 h", () => {
    const seconds = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 100].map((n) => backoffMs(n) / 1_000);
    assert.deepEqual(seconds, [20, 40, 80, 160, 320, 640, 1280, 2560, 3600, 3600, 3600]);
  });

  test("grows, and never over an hour", () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 5_000 }), (n) => {
        assert.ok(backoffMs(n) >= 20_000 && backoffMs(n) <= HOUR && backoffMs(n + 1) >= backoffMs(n));
      }),
    );
  });
});

describe("the wait before a retry", () => {
  test("retry_delays replace the backoff, and the last one repeats", () => {
    const rules = { ...RULES, retryDelays: ["1s", "5m"] };
    assert.deepEqual(
      [1, 2, 3, 9].map((n) => retryWaitMs(rules, n, 0)),
      [1_000, 300_000, 300_000, 300_000],
    );
  });

  test("what the target asks for lengthens it, up to an hour, and never shortens it", () => {
    assert.equal(retryWaitMs(RULES, 1, 60_000), 60_000);
    assert.equal(retryWaitMs(RULES, 1, 5_000), 20_000);
    assert.equal(retryWaitMs(RULES, 1, 2 * HOUR), HOUR);
    assert.equal(retryWaitMs({ ...RULES, retryDelays: ["1s"] }, 1, 30_000), 30_000);
    // An own delay above the cap stands: only what the target asks for is cut.
    assert.equal(retryWaitMs({ ...RULES, retryDelays: ["1d"] }, 1, 2 * HOUR), 24 * HOUR);
  });
});

describe("Retry-After", () => {
  const cases: [code: number, value: string | undefined, ms: number][] = [
    [429, "30", 30_000],
    [503, " 30 ", 30_000],
    [503, "0", 0],
    [429, "Mon, 05 Jan 2026 00:01:00 GMT", 60_000],
    [429, "Sun, 04 Jan 2026 00:00:00 GMT", 0],
    [500, "30", 0],
    [200, "30", 0],
    [429, "soon", 0],
    [429, "-5", 0],
    [429, "", 0],
    [429, undefined, 0],
  ];
  for (const [code, value, ms] of cases) {
    test(`${code} with ${value} asks for ${ms} ms`, () => {
      assert.equal(retryAfterMs(code, value === undefined ? {} : { "retry-after": value }, NOW), ms);
    });
  }

  test("whatever it says, the wait is a number between the backoff and an hour", () => {
    fc.assert(
      fc.property(fc.string(), fc.integer({ min: 1, max: 20 }), (value, n) => {
        const wait = retryWaitMs(RULES, n, retryAfterMs(429, { "retry-after": value }, NOW));
        assert.ok(wait >= backoffMs(n) && wait <= HOUR);
      }),
    );
    assert.equal(retryWaitMs(RULES, 1, retryAfterMs(429, { "retry-after": "9".repeat(400) }, NOW)), HOUR);
  });
});

describe("outcomes that end a job at once", () => {
  test("statuses and classes named in no_retry_on", () => {
    const rules = { ...RULES, noRetryOn: [404, "5xx"] };
    assert.match(finalBecause(rules, response(404)) ?? "", /404/);
    for (const code of [500, 503, 599]) assert.match(finalBecause(rules, response(code)) ?? "", /5xx/);
    for (const code of [400, 499]) assert.equal(finalBecause(rules, response(code)), null);
    assert.equal(finalBecause(rules, failure("connect")), null);
  });

  test("what no later attempt can mend", () => {
    for (const code of ["blocked_target", "unresolved_reference"] as const)
      assert.match(finalBecause(RULES, failure(code)) ?? "", new RegExp(code));
    for (const code of ["timeout", "dns", "connect", "tls", "reset", "invalid_response"] as const)
      assert.equal(finalBecause(RULES, failure(code)), null);
  });
});
