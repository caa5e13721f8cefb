/** Whatever happens to a job, in whatever order, its history stays within the table. */
import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";
import { Problem } from "../../src/base/errors.ts";
import type { Job, NewStep, Step } from "../../src/jobs/job.ts";
import {
  approve,
  begin,
  type Changes,
  cancel,
  FINAL,
  interrupt,
  type JobEvent,
  LIFECYCLE,
  MAX_DEATHS,
  reject,
  release,
  retry,
  settle,
} from "../../src/jobs/lifecycle.ts";
import { aJob, failure, newStep, response } from "../support/factories.ts";

const START = Date.parse("2026-01-05T00:00:00Z");

const outcome = fc.oneof(
  fc.integer({ min: 100, max: 599 }).map((code) => response(code)),
  fc
    .constantFrom("timeout", "connect", "blocked_target", "unresolved_reference")
    .map((code) => failure(code as "timeout")),
);
const event = fc.oneof(
  { weight: 4, arbitrary: fc.record({ kind: fc.constant("begin" as const) }) },
  { weight: 4, arbitrary: fc.record({ kind: fc.constant("outcome" as const), outcome }) },
  fc.record({
    kind: fc.constantFrom("interrupt", "release", "approve", "reject", "cancel", "retry"),
  }),
);
const step = (name: string) =>
  fc
    .record({ requiresApproval: fc.boolean(), delay: fc.constantFrom(null, "5s") })
    .map((fields) => newStep(name, fields));
const world = fc.record({
  maxAttempts: fc.integer({ min: 1, max: 4 }),
  noRetryOn: fc.constantFrom([], [404], ["5xx"]),
  requiresApproval: fc.boolean(),
  steps: fc.oneof(fc.constant([]), fc.tuple(step("a"), step("b"))),
  events: fc.array(event, { minLength: 20, maxLength: 60 }),
});

test("only transitions of the table; final stays final; attempts never decrease; the budget holds", () => {
  let moves = 0;
  fc.assert(
    fc.property(world, ({ maxAttempts, noRetryOn, requiresApproval, steps, events }) => {
      const rules = { maxAttempts, timeout: "30s", retryDelays: null, noRetryOn };
      const withRules = steps.map((one: NewStep) => ({ ...one, ...rules }));
      let job: Job = aJob(START, {}, { rules, requiresApproval, steps: withRules });
      const approved = new Map<number, number>();
      let now = START;

      for (const one of events) {
        now += 1_000;
        const before = job;
        const current = stepOf(withRules, approved, job.step);
        const applied = apply(before, one, current, stepOf(withRules, approved, job.step + 1), now);
        if (applied === null) continue;
        const { name, changes } = applied;
        moves += 1;
        assert.ok(LIFECYCLE[before.status][name]?.includes(changes.status), `${before.status} ${name}`);
        job = { ...before, ...changes };
        if (changes.approvedAt !== undefined) approved.set(before.step, changes.approvedAt!);

        if (FINAL.has(before.status)) assert.equal(name, "retry");
        if (job.step === before.step) assert.ok(job.attempts >= before.attempts, "attempts never decrease");
        else assert.equal(job.step, before.step + 1);
        assert.ok(job.spent <= job.attempts, "what is spent was attempted");
        assert.ok(job.spent <= maxAttempts, "never more than the budget");
        assert.ok(job.deaths <= MAX_DEATHS);
        if (name === "interrupt" || name === "release") assert.equal(job.spent, before.spent);
        if (name === "interrupt" && job.status === "pending") assert.ok(job.deaths < MAX_DEATHS);
        assert.equal(job.finishedAt !== null, FINAL.has(job.status));
        assert.ok(job.status !== "pending" || job.dueAt !== null, "pending is due some time");
        assert.ok(job.status !== "active" || job.startedAt !== null);
        if (job.status === "active" && (requiresApproval || (current?.requiresApproval ?? false))) {
          const given = current === null ? job.approvedAt : (approved.get(job.step) ?? null);
          if (job.step === 0 || current?.requiresApproval) assert.notEqual(given, null, "never unapproved");
        }
      }
    }),
    { numRuns: 3_000 },
  );
  assert.ok(moves > 5_000, `the events move jobs: ${moves}`);
});

function stepOf(steps: readonly NewStep[], approved: ReadonlyMap<number, number>, i: number): Step | null {
  const found = steps[i];
  return found === undefined ? null : { ...found, approvedAt: approved.get(i) ?? null };
}

/** What the event comes to; null where the state has no such event, which each of them has to say by itself. */
function apply(
  job: Job,
  event: { kind: string; outcome?: Parameters<typeof settle>[3] },
  current: Step | null,
  next: Step | null,
  now: number,
): { name: JobEvent; changes: Changes } | null {
  const person = (name: JobEvent, rule: () => Changes) => {
    const may = LIFECYCLE[job.status][name] !== undefined;
    try {
      const changes = rule();
      assert.ok(may, `${name} of ${job.status} was let through`);
      return { name, changes };
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
      assert.ok(!may, `${name} of ${job.status} was refused`);
      return null;
    }
  };
  switch (event.kind) {
    case "begin":
      return job.status === "pending" ? { name: "begin", changes: begin(job, now) } : null;
    case "outcome": {
      if (job.status !== "active") return null;
      const settled = settle(job, null, next, event.outcome!, now);
      return { name: settled.event, changes: settled.changes };
    }
    case "interrupt":
    case "release": {
      if (job.status !== "active") return null;
      const rule = event.kind === "interrupt" ? interrupt : release;
      return { name: event.kind, changes: rule(job, null, now).changes };
    }
    case "approve":
      return person("approve", () => approve(job, current, "me", null, now));
    case "reject":
      return person("reject", () => reject(job, "me", null, now));
    case "cancel":
      return person("cancel", () => cancel(job, now));
    default:
      return person("retry", () => retry(job, current, now));
  }
}
