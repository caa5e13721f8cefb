/** GCRA, against a plain bucket that counts. */
import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";
import { takeRequest } from "../../src/accounts/rate-limit.ts";

// Intervals of whole milliseconds, so that the sums of both sides are exact.
const limits = fc.record({
  perSecond: fc.constantFrom(1, 8, 125, 1_000),
  burst: fc.integer({ min: 1, max: 64 }),
});

test("allows what a bucket of `burst` tokens, filled with `perSecond`, allows", () => {
  fc.assert(
    fc.property(
      limits,
      fc.array(fc.integer({ min: 0, max: 3_000 }), { minLength: 1, maxLength: 200, size: "max" }),
      (limit, gaps) => {
        let now = 10_000;
        let tat = 0;
        let thousandths = limit.burst * 1_000;
        for (const gap of gaps) {
          now += gap;
          thousandths = Math.min(limit.burst * 1_000, thousandths + gap * limit.perSecond);
          const decision = takeRequest(limit, tat, now);
          tat = decision.tatMs;
          assert.equal(decision.allowed, thousandths >= 1_000);
          if (decision.allowed) thousandths -= 1_000;
          assert.equal(decision.remaining, decision.allowed ? Math.floor(thousandths / 1_000) : 0);
        }
      },
    ),
  );
});

test("a refused request is allowed after exactly retryAfterMs, and refusals cost nothing", () => {
  fc.assert(
    fc.property(limits, (limit) => {
      let tat = 0;
      for (let i = 0; i < limit.burst; i++) {
        const decision = takeRequest(limit, tat, 0);
        assert.ok(decision.allowed);
        tat = decision.tatMs;
      }
      for (let i = 0; i < 3; i++) {
        const refused = takeRequest(limit, tat, 0);
        assert.ok(!refused.allowed);
        assert.equal(refused.retryAfterMs, 1_000 / limit.perSecond);
        tat = refused.tatMs;
      }
      assert.ok(!takeRequest(limit, tat, 999 / limit.perSecond).allowed);
      assert.ok(takeRequest(limit, tat, 1_000 / limit.perSecond).allowed);
    }),
  );
});
