/** The table of states and events, by examples. Its properties over any history: lifecycle-properties.test.ts. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { Problem } from "../../src/base/errors.ts";
import { type JobStatus, STATUSES } from "../../src/jobs/job.ts";
import {
  actionsOn,
  approve,
  begin,
  cancel,
  EVENTS,
  firstState,
  interrupt,
  LIFECYCLE,
  reject,
  release,
  retry,
  settle,
} from "../../src/jobs/lifecycle.ts";
import { aJob, failure, newJob, newPipeline, newStep, response } from "../support/factories.ts";

const NOW = Date.parse("2026-01-05T00:00:00Z");
const active = (fields = {}, made = {}) =>
  aJob(NOW, { status: "active", attempts: 1, startedAt: NOW, dueAt: null, ...fields }, made);

test("the table knows every event, and nothing leaves a completed job", () => {
  const known = new Set(Object.values(LIFECYCLE).flatMap((row) => Object.keys(row)));
  assert.deepEqual([...known].toSorted(), EVENTS.toSorted());
  assert.deepEqual(LIFECYCLE.completed, {});
});

describe("a new job", () => {
  test("is pending at its time", () => {
    assert.deepEqual(firstState(newJob(NOW, { runAt: NOW + 5 }), NOW), {
      status: "pending",
      dueAt: NOW + 5,
    });
  });

  test("waits for approval where it, or its first step, requires one", () => {
    const waits = { status: "awaiting_approval", dueAt: NOW + 60_000 };
    const approval = { requiresApproval: true, approvalTimeout: "1m" };
    assert.deepEqual(firstState(newJob(NOW, approval), NOW), waits);
    const gated = newStep("a", { requiresApproval: true });
    assert.deepEqual(firstState(newPipeline(NOW, [gated], { approvalTimeout: "1m" }), NOW), waits);
    assert.equal(firstState(newJob(NOW, { requiresApproval: true }), NOW).dueAt, null);
  });
});

describe("an attempt", () => {
  test("begins: active, counted, no longer due", () => {
    const { status, attempts, dueAt, startedAt } = begin(aJob(NOW), NOW + 1);
    assert.deepEqual([status, attempts, dueAt, startedAt], ["active", 1, null, NOW + 1]);
  });

  test("succeeds by any 2xx", () => {
    for (const code of [200, 201, 204, 299]) {
      const { event, changes, attempt } = settle(active(), null, null, response(code), NOW + 9);
      assert.equal(event, "complete");
      assert.deepEqual(
        [changes.status, changes.finishedAt, changes.responseCode, changes.lastError, changes.spent],
        ["completed", NOW + 9, code, null, 1],
      );
      assert.match(attempt.decision, /^Completed/);
    }
  });

  test("fails by anything else, and is retried by the backoff", () => {
    for (const code of [199, 300, 302, 404, 500]) {
      const { changes } = settle(active(), null, null, response(code), NOW);
      assert.deepEqual(
        [changes.status, changes.dueAt, changes.lastErrorCode, changes.spent],
        ["pending", NOW + 20_000, "http_status", 1],
      );
    }
    assert.match(settle(active(), null, null, response(302), NOW).changes.lastError ?? "", /redirects/);
  });

  test("says when the retry is, and why", () => {
    for (const outcome of [response(500), failure()])
      assert.match(
        settle(active(), null, null, outcome, NOW).attempt.decision,
        /^Retry in 20 s, at 2026-01-05T00:00:20\.000Z, 2 of 3 attempts left\. The target /,
      );
    const { attempt } = settle(active(), null, null, response(503, { "retry-after": "60" }), NOW);
    assert.equal(
      attempt.decision,
      "Retry in 60 s, at 2026-01-05T00:01:00.000Z, 2 of 3 attempts left; the target asked for a wait with Retry-After. The target answered 503.",
    );
  });

  test("that was the last fails the job", () => {
    const { event, changes, attempt } = settle(active({ attempts: 3, spent: 2 }), null, null, failure(), NOW);
    assert.deepEqual([event, changes.status, changes.dueAt], ["fail", "failed", null]);
    assert.match(attempt.decision, /attempt 3 of 3 was the last/);
  });

  test("that no_retry_on names fails the job at once", () => {
    const job = active(
      {},
      { rules: { maxAttempts: 9, timeout: "30s", retryDelays: null, noRetryOn: ["4xx"] } },
    );
    assert.equal(settle(job, null, null, response(404), NOW).changes.status, "failed");
    assert.equal(settle(job, null, null, response(500), NOW).changes.status, "pending");
  });

  test("of a step that is not the last advances the pipeline with a fresh count", () => {
    // A clock that was set back: run_at holds the first step only.
    const job = active({ attempts: 2, spent: 2, runAt: NOW + 3_600_000 });
    const next = { ...newStep("b"), approvedAt: null };
    const { event, changes } = settle(job, "a", next, response(200), NOW);
    assert.equal(event, "advance");
    assert.deepEqual(
      [changes.status, changes.step, changes.attempts, changes.spent, changes.dueAt],
      ["pending", 1, 0, 0, NOW],
    );
    const gated = { ...next, requiresApproval: true };
    const cases = [
      [next, "pending", NOW, "Done; step b is next."],
      [{ ...next, delay: "5m" }, "pending", NOW + 300_000, "Done; step b is next, in 5m."],
      [gated, "awaiting_approval", null, "Done; step b waits for approval."],
      [{ ...gated, approvedAt: NOW }, "pending", NOW, "Done; step b is next."],
    ] as const;
    for (const [step, status, dueAt, decision] of cases) {
      const { changes: made, attempt } = settle(job, "a", step, response(200), NOW);
      assert.deepEqual([made.status, made.dueAt, attempt.decision], [status, dueAt, decision]);
    }
  });
});

describe("an attempt that the process did not outlive", () => {
  test("is not counted, and is due at once", () => {
    const { changes, attempt } = interrupt(active(), null, NOW + 1);
    assert.deepEqual(
      [changes.status, changes.dueAt, changes.deaths, changes.lastErrorCode],
      ["pending", NOW + 1, 1, "interrupted"],
    );
    assert.equal(changes.spent, undefined);
    assert.match(attempt.decision, /^Delivered again at once/);
  });

  test("fails the job the third time", () => {
    assert.equal(interrupt(active({ deaths: 1 }), null, NOW).changes.status, "pending");
    const { changes, attempt } = interrupt(active({ deaths: 2 }), null, NOW);
    assert.deepEqual([changes.status, changes.lastErrorCode], ["failed", "interrupted"]);
    assert.match(attempt.decision, /^Failed: the service died 3 times/);
  });

  test("or that a shutdown cut short, is neither a death nor spent", () => {
    const { changes } = release(active(), null, NOW + 1);
    assert.deepEqual([changes.status, changes.dueAt], ["pending", NOW + 1]);
    assert.deepEqual([changes.spent, changes.deaths], [undefined, undefined]);
  });
});

describe("what people do", () => {
  const waiting = (fields = {}) =>
    aJob(NOW, { status: "awaiting_approval", dueAt: null, requiresApproval: true, ...fields });

  test("approve: pending, and run_at still holds", () => {
    assert.equal(approve(waiting({ runAt: NOW + 99 }), null, "me", null, NOW).dueAt, NOW + 99);
    const late = approve(waiting(), null, "me", "fine", NOW + 5);
    assert.deepEqual(
      [late.status, late.dueAt, late.approvedBy, late.approvalNote],
      ["pending", NOW + 5, "me", "fine"],
    );
  });

  test("reject: cancelled, with who and why", () => {
    const { status, rejectedBy, approvalNote, finishedAt } = reject(waiting(), "me", "no", NOW);
    assert.deepEqual([status, rejectedBy, approvalNote, finishedAt], ["cancelled", "me", "no", NOW]);
  });

  test("retry: a new budget, and no way round an approval that was never given", () => {
    const failed = aJob(NOW, { status: "failed", attempts: 3, spent: 3, deaths: 2, finishedAt: NOW });
    const again = retry(failed, null, NOW + 1);
    assert.deepEqual(
      [again.status, again.spent, again.deaths, again.finishedAt, again.attempts],
      ["pending", 0, 0, null, undefined],
    );
    const rejected = waiting({ status: "cancelled", finishedAt: NOW });
    assert.equal(retry(rejected, null, NOW).status, "awaiting_approval");
    assert.equal(retry({ ...rejected, approvedAt: NOW }, null, NOW).status, "pending");
    const step = { ...newStep("b", { requiresApproval: true }), approvedAt: null };
    const later = { ...failed, step: 1 };
    assert.equal(retry(later, step, NOW).status, "awaiting_approval");
    // The approval of a pipeline is that of its first step: a later one, which asks for none, does not wait for it again.
    const free = { ...step, requiresApproval: false };
    assert.equal(retry({ ...later, requiresApproval: true }, free, NOW).status, "pending");
  });

  test("is possible in the states of the contract only, and else names the state", () => {
    const allowed: Record<string, readonly JobStatus[]> = {
      cancel: ["pending", "awaiting_approval"],
      approve: ["awaiting_approval"],
      reject: ["awaiting_approval"],
      retry: ["failed", "cancelled"],
    };
    const rules = {
      cancel: (status: JobStatus) => cancel(aJob(NOW, { status }), NOW),
      approve: (status: JobStatus) => approve(aJob(NOW, { status }), null, "me", null, NOW),
      reject: (status: JobStatus) => reject(aJob(NOW, { status }), "me", null, NOW),
      retry: (status: JobStatus) => retry(aJob(NOW, { status }), null, NOW),
    };
    for (const [name, rule] of Object.entries(rules)) {
      for (const status of STATUSES) {
        const may = allowed[name]!.includes(status);
        assert.equal(actionsOn(status).includes(name as "cancel"), may, `${name} of ${status}`);
        if (may) assert.ok(LIFECYCLE[status][name as "cancel"]!.includes(rule(status).status));
        else
          assert.throws(
            () => rule(status),
            (error) =>
              error instanceof Problem && error.status === 409 && error.message.includes(`is ${status}`),
          );
      }
    }
  });
});
