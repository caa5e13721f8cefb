/** Lanes: gates are never exceeded, no lane is forgotten, and nobody is in another's way. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import * as fc from "fast-check";
import { type Grant, Lanes } from "../../src/engine/lanes.ts";
import { placesFor, type Standing, standingAfter } from "../../src/engine/shares.ts";
import type { Lane } from "../../src/store/store.ts";
import { failure, response } from "../support/factories.ts";

const lane = (id: number, queueId: number, origin: string): Lane => ({ id, queueId, origin });

/** The jobs behind the lanes, as a store would have them: due times by lane, and what is under way. */
class Backlog {
  readonly due = new Map<number, number[]>();
  readonly active: Lane[] = [];

  add(one: Lane, at: number): void {
    this.due.set(
      one.id,
      [...(this.due.get(one.id) ?? []), at].toSorted((a, b) => a - b),
    );
  }

  claim({ lane: one, limit }: Grant, now: number): { count: number; next: number | null } {
    const jobs = this.due.get(one.id) ?? [];
    const count = Math.min(limit, jobs.filter((at) => at <= now).length);
    this.due.set(one.id, jobs.slice(count));
    for (let i = 0; i < count; i++) this.active.push(one);
    return { count, next: jobs[count] ?? null };
  }

  get size(): number {
    return [...this.due.values()].reduce((sum, jobs) => sum + jobs.length, 0);
  }
}

const standings: readonly Standing[] = ["quick", "slow", "new"];
const LANES = [0, 1, 2, 3, 4, 5].map((id) => lane(id, id % 3, `http://o${id % 4}`));
const action = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({
      kind: fc.constant("add" as const),
      which: fc.nat(5),
      in: fc.nat(30),
      many: fc.integer({ min: 1, max: 6 }),
    }),
  },
  { weight: 5, arbitrary: fc.record({ kind: fc.constant("finish" as const), which: fc.nat(50) }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant("pass" as const), ms: fc.nat(20) }) },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant("limit" as const),
      queue: fc.nat(2),
      to: fc.constantFrom(0, 1, 3, null),
    }),
  },
  // A note or an end while a claim is under way.
  {
    weight: 2,
    arbitrary: fc.record({ kind: fc.constant("overlap" as const), which: fc.nat(5), finish: fc.nat(50) }),
  },
);

test("whatever happens, no gate is exceeded and every job gets its turn", () => {
  let claimed = 0;
  fc.assert(
    fc.property(
      fc.record({ total: fc.integer({ min: 1, max: 12 }), perOrigin: fc.integer({ min: 1, max: 5 }) }),
      fc.array(action, { minLength: 5, maxLength: 80, size: "max" }),
      (limits, actions) => {
        const lanes = new Lanes(limits);
        const backlog = new Backlog();
        const queueLimits = new Map<number, number>();
        let now = 1_000;

        const check = () => {
          assert.ok(backlog.active.length <= limits.total, "total");
          assert.equal(lanes.inFlight, backlog.active.length);
          assert.ok(lanes.depth.sleeping <= lanes.depth.lanes, "a lane sleeps once");
          for (const origin of new Set(LANES.map((one) => one.origin))) {
            const here = backlog.active.filter((one) => one.origin === origin).length;
            assert.ok(here <= limits.perOrigin, "origin");
          }
        };
        /** What the dispatcher does as long as it is due at once. `during` happens between a grant and its claim. */
        const run = (during = () => {}) => {
          for (let round = 0; ; round++) {
            assert.ok(round < 1_000, "comes to rest");
            const before = backlog.active.length;
            const grants = lanes.take(now);
            if (round === 0) during();
            for (const grant of grants) {
              const queue = backlog.active.filter((one) => one.queueId === grant.lane.queueId).length;
              const { count, next } = backlog.claim(grant, now);
              claimed += count;
              const limit = queueLimits.get(grant.lane.queueId) ?? Infinity;
              assert.ok(count === 0 || queue + count <= limit, "queue");
              lanes.claimed(grant, count, next, now);
            }
            if (backlog.active.length > before) check();
            const wakeAt = lanes.wakeAt(now);
            if (wakeAt === null || wakeAt > now) return;
          }
        };
        const finish = (which: number) => {
          if (backlog.active.length === 0) return;
          const [ended] = backlog.active.splice(which % backlog.active.length, 1);
          lanes.finished(ended!, standings[which % standings.length]!, now);
        };
        const add = (which: number, at: number) => {
          backlog.add(LANES[which]!, at);
          lanes.note(LANES[which]!, at);
        };

        for (const one of actions) {
          if (one.kind === "add") for (let i = 0; i < one.many; i++) add(one.which, now + one.in);
          else if (one.kind === "finish") finish(one.which);
          else if (one.kind === "pass") now += one.ms;
          else if (one.kind === "limit") {
            queueLimits.set(one.queue, one.to ?? Infinity);
            lanes.setQueueLimits(
              {
                id: one.queue,
                concurrency: one.to === 0 ? null : one.to,
                paused: one.to === 0,
              },
              now,
            );
          }
          if (one.kind === "overlap") {
            run(() => {
              add(one.which, now);
              finish(one.finish);
            });
          } else run();
          check();
        }

        // The limits go, and time passes: everything has to come, woken by nothing but wakeAt and ends of attempts.
        for (const id of [0, 1, 2]) lanes.setQueueLimits({ id, concurrency: null, paused: false }, now);
        queueLimits.clear();
        for (let i = 0; backlog.size > 0 || backlog.active.length > 0; i++) {
          assert.ok(i < 10_000, "nothing is forgotten");
          run();
          check();
          if (backlog.active.length > 0) finish(0);
          else {
            const wakeAt = lanes.wakeAt(now);
            assert.ok(backlog.size === 0 || wakeAt !== null, "a lane was forgotten");
            now = Math.max(now, wakeAt ?? now);
          }
        }
        assert.deepEqual(lanes.depth, { lanes: 0, sleeping: 0, parked: 0, ready: 0 });
      },
    ),
    { numRuns: 2_000 },
  );
  assert.ok(claimed > 10_000, `jobs were claimed: ${claimed}`);
});

test("a lane wakes for the earliest job that it was told of, in whatever order, also during a claim", () => {
  const lanes = new Lanes({ total: 8, perOrigin: 8 });
  const one = lane(1, 0, "http://one");
  for (const at of [100, 20, 60]) lanes.note(one, at);
  assert.equal(lanes.wakeAt(0), 20);
  for (const [noted, next, wakeAt] of [
    [[90, 50, 70], 80, 50],
    [[90], 80, 80],
    [[90], null, 90],
    [[], 80, 80],
  ] as const) {
    const [grant] = lanes.take(100);
    for (const at of noted) lanes.note(one, 100 + at);
    lanes.claimed(grant!, 0, next === null ? null : 100 + next, 100);
    lanes.note(one, 1_000);
    assert.equal(lanes.wakeAt(100), 100 + wakeAt);
    lanes.note(one, 100);
  }
});

test("a lane that a rate limit put off claims again when the limits of its queue change, also during its claim", () => {
  const lanes = new Lanes({ total: 8, perOrigin: 8 });
  lanes.note(lane(1, 7, "http://one"), 0);
  const change = () => lanes.setQueueLimits({ id: 7, concurrency: null, paused: false }, 0);
  const [first] = lanes.take(0);
  lanes.claimed(first!, 0, 1_000, 0);
  assert.deepEqual(lanes.take(0), []);
  change();
  const [second] = lanes.take(0);
  change();
  lanes.claimed(second!, 0, 1_000, 0);
  assert.equal(lanes.take(0).length, 1);
});

test("of lanes that a rate limit holds, those that got nothing in one period come first in the next", () => {
  const lanes = new Lanes({ total: 8, perOrigin: 8 });
  for (const id of [1, 2, 3]) lanes.note(lane(id, 0, `http://o${id}`), 0);
  const served: number[] = [];
  for (const now of [0, 1_000, 2_000, 3_000, 4_000, 5_000]) {
    const grants = lanes.take(now);
    served.push(grants[0]!.lane.id);
    // One attempt a second is what the limit lets through.
    grants.forEach((grant, i) => lanes.claimed(grant, i === 0 ? 1 : 0, now + 1_000, now));
    lanes.finished(grants[0]!.lane, "new", now);
  }
  assert.equal(new Set(served.slice(0, 3)).size, 3);
  assert.deepEqual(served.slice(3), served.slice(0, 3));
});

test("a job far ahead in a lane where others come and go is remembered once", () => {
  const lanes = new Lanes({ total: 8, perOrigin: 8 });
  const busy = lane(1, 0, "http://busy");
  lanes.note(busy, 1_000_000);
  for (let now = 0; now < 100; now++) {
    lanes.note(busy, now);
    for (const grant of lanes.take(now)) lanes.claimed(grant, 1, 1_000_000, now);
    lanes.finished(busy, "quick", now);
  }
  assert.deepEqual(lanes.depth, { lanes: 1, sleeping: 1, parked: 0, ready: 0 });
  assert.equal(lanes.wakeAt(100), 1_000_000);
});

test("a lane that a rate limit holds by a clock that was ahead goes on when the clock is right again", () => {
  const lanes = new Lanes({ total: 8, perOrigin: 8 });
  const held = lane(1, 0, "http://held");
  const [right, ahead] = [1_000_000, 90_000_000];
  lanes.note(held, right);
  for (const grant of lanes.take(ahead)) lanes.claimed(grant, 1, ahead + 60_000, ahead);
  lanes.finished(held, "quick", ahead);
  assert.deepEqual(lanes.take(ahead), []);
  assert.equal(lanes.take(right).length, 1);
});

describe("shares", () => {
  /** Grants until nothing more is granted; each lane has as many jobs as it may claim. */
  function fill(lanes: Lanes, now = 0): Map<string, number> {
    const taken = new Map<string, number>();
    for (let grants = lanes.take(now); grants.length > 0; grants = lanes.take(now)) {
      for (const grant of grants) {
        taken.set(grant.lane.origin, (taken.get(grant.lane.origin) ?? 0) + grant.limit);
        lanes.claimed(grant, grant.limit, now, now);
      }
    }
    return taken;
  }

  test("what an attempt shows: a quick end is quick whatever it was, a late answer is slow, all else shows nothing", () => {
    for (const outcome of [response(200), response(500), failure("connect")]) {
      assert.equal(standingAfter({ ...outcome, durationMs: 1_000 }), "quick");
      assert.equal(
        standingAfter({ ...outcome, durationMs: 1_001 }),
        outcome.kind === "response" ? "slow" : "new",
      );
    }
    assert.equal(standingAfter(null), "new");
  });

  const LIMITS = { total: 512, perOrigin: 64 };

  test("places by standing, by what is taken over all, by the origins that contend, and by its own", () => {
    const cases: [Standing, taken: number, contending: number, own: number, places: number][] = [
      ["new", 0, 1, 0, 8],
      ["new", 5, 2, 0, 3],
      ["new", 5, 2, 5, 8],
      ["new", 100, 2, 0, 1],
      ["silent", 127, 2, 0, 64],
      ["silent", 127, 4, 0, 32],
      ["silent", 128, 4, 0, 1],
      ["quick", 255, 100, 0, 64],
      ["slow", 255, 100, 0, 64],
      ["quick", 256, 8, 0, 32],
      ["slow", 256, 1_000, 0, 1],
    ];
    for (const [standing, taken, contending, own, places] of cases)
      assert.equal(placesFor(standing, LIMITS, { taken, contending }, own), places, `${standing} ${taken}`);
  });

  /** One attempt that has shown what the origin is. */
  function show(lanes: Lanes, one: Lane, standing: Standing): void {
    lanes.note(one, 0);
    for (const grant of lanes.take(0)) lanes.claimed(grant, 1, null, 0);
    lanes.finished(one, standing, 0);
  }

  test("an origin that nobody called before begins with a few attempts, and gets its limit by an answer or a second", () => {
    const lanes = new Lanes(LIMITS);
    const [answers, waits] = [lane(1, 0, "http://answers"), lane(2, 0, "http://waits")];
    lanes.note(answers, 0);
    lanes.note(waits, 0);
    assert.deepEqual([...fill(lanes).values()], [8, 1]);
    lanes.finished(answers, "quick", 5);
    assert.deepEqual([...fill(lanes, 5)], [["http://answers", 57]]);
    assert.equal(lanes.wakeAt(5), 1_000);
    assert.deepEqual([...fill(lanes, 1_000)], [["http://waits", 63]]);
  });

  test("a clock that was set back does not keep an origin at its first few attempts", () => {
    const lanes = new Lanes(LIMITS);
    const [right, ahead] = [1_000_000, 90_000_000];
    lanes.note(lane(1, 0, "http://waits"), right);
    assert.equal(fill(lanes, ahead).get("http://waits"), 8);
    assert.equal(fill(lanes, right).size, 0);
    assert.equal(fill(lanes, right + 1_000).get("http://waits"), 56);
  });

  test("500 origins that hang hold hardly more than a place each, and all others begin at once", () => {
    const lanes = new Lanes(LIMITS);
    for (let i = 0; i < 500; i++) lanes.note(lane(i, 0, `http://dead${i}`), 0);
    for (const now of [0, 1_000, 60_000]) fill(lanes, now);
    assert.equal(lanes.inFlight, 507);
    for (let i = 0; i < 500; i++) {
      const healthy = lane(1_000 + i, 0, `http://healthy${i}`);
      lanes.note(healthy, 0);
      assert.equal(fill(lanes).get(healthy.origin), 1);
      lanes.finished(healthy, "quick", 0);
      // It has no end of due jobs; the next one is not to find its places taken.
      lanes.take(0).forEach((grant) => lanes.claimed(grant, 0, null, 0));
    }
  });

  test("more origins than there are places hang: the last places are for those that are quick", () => {
    const lanes = new Lanes(LIMITS);
    const quick = lane(1, 0, "http://quick");
    show(lanes, quick, "quick");
    for (let i = 0; i < 2_000; i++) lanes.note(lane(10 + i, 0, `http://dead${i}`), 0);
    fill(lanes);
    assert.equal(lanes.inFlight, 508);
    lanes.note(quick, 0);
    assert.ok((fill(lanes).get("http://quick") ?? 0) >= 1);
  });

  test("an origin that answers, but slowly, may use its limit as long as half of the places are free", () => {
    const lanes = new Lanes(LIMITS);
    const slow = [1, 2, 3, 4].map((id) => lane(id, 0, `http://slow${id}`));
    for (const one of slow) show(lanes, one, "slow");
    for (const one of slow) lanes.note(one, 0);
    assert.deepEqual([...fill(lanes).values()], [64, 64, 64, 64]);
  });

  test("a quick origin that falls silent is an unknown one to those who come after", () => {
    const lanes = new Lanes(LIMITS);
    const [quick, other] = [lane(1, 0, "http://quick"), lane(2, 0, "http://other")];
    show(lanes, quick, "quick");
    for (let i = 0; i < 200; i++) lanes.note(lane(10 + i, 0, `http://dead${i}`), 0);
    fill(lanes);
    lanes.note(quick, 0);
    for (const grant of lanes.take(0)) lanes.claimed(grant, 1, null, 0);
    lanes.note(quick, 5_000);
    assert.equal(fill(lanes, 5_000).get("http://quick"), undefined);
    // Nothing is held against one that never hung.
    show(lanes, other, "quick");
    lanes.note(other, 5_000);
    assert.equal(fill(lanes, 5_000).get("http://other"), 64);
  });

  test("a lane that was held to its share goes on when others have ended, though none of its own has", () => {
    const lanes = new Lanes({ total: 8, perOrigin: 4 });
    const [a, b, c] = [lane(1, 0, "http://a"), lane(2, 0, "http://b"), lane(3, 0, "http://c")];
    for (const one of [a, b, c]) show(lanes, one, "quick");
    lanes.note(a, 0);
    for (const grant of lanes.take(0)) lanes.claimed(grant, grant.limit, null, 0);
    lanes.note(b, 0);
    lanes.note(c, 0);
    const taken = fill(lanes);
    assert.deepEqual([taken.get("http://b"), taken.get("http://c")], [1, 1]);
    // Everything of a ends; b's and c's one attempt each goes on and on.
    assert.equal(lanes.inFlight, 6);
    let more = 0;
    for (let i = 0; i < 4; i++) {
      lanes.finished(a, "quick", 0);
      more += fill(lanes).get("http://b") ?? 0;
    }
    assert.ok(more > 0, "b got more");
  });

  test("lanes of one origin in two queues share its limit", () => {
    const lanes = new Lanes({ total: 100, perOrigin: 4 });
    lanes.note(lane(1, 1, "http://a"), 0);
    lanes.note(lane(2, 2, "http://a"), 0);
    show(lanes, lane(3, 3, "http://a"), "quick");
    assert.deepEqual([...fill(lanes)], [["http://a", 4]]);
  });
});
