/** What any store has to keep of its promises to the engine: run against an adapter by sqlite.test.ts. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Attempt } from "../../src/jobs/job.ts";
import { cancel, interrupt, reject, settle } from "../../src/jobs/lifecycle.ts";
import type { Outcome } from "../../src/jobs/outcome.ts";
import type { Change, Claim, Page, Store } from "../../src/store/store.ts";
import { failure, newJob, newPipeline, newStep, response, TENANT } from "../support/factories.ts";
import { enqueue } from "./conformance-jobs.ts";

const NOW = Date.parse("2026-01-05T00:00:00Z");
const ALL = { limit: 100, cursor: null };

/** Claims what is due in every lane. */
export async function claimAll(store: Store, now: number, limit = 100): Promise<readonly Claim[]> {
  const lanes = await store.engine.lanes();
  const results = await store.engine.claimDue(
    lanes.map(({ lane }) => ({ lane, limit })),
    now,
  );
  return results.flatMap(({ claims }) => claims);
}

export function outcomeOf(claim: Claim, outcome: Outcome, now: number) {
  const { pipeline, job } = claim;
  return settle(job, pipeline?.step.name ?? null, pipeline?.next ?? null, outcome, now);
}

export function engineConformance(open: () => Promise<Store>): void {
  describe("claim", () => {
    test("takes what is due, first due first, up to the limit, and tells what is next", async () => {
      const store = await open();
      const url = "http://127.0.0.1:9/";
      const [late, early, future] = await enqueue(
        store,
        newJob(NOW, { url, runAt: NOW + 20 }),
        newJob(NOW, { url, runAt: NOW + 10 }),
        newJob(NOW, { url, runAt: NOW + 99 }),
      );
      const { lane, dueAt } = (await store.engine.lanes())[0]!;
      assert.equal(dueAt, NOW + 10);
      assert.equal(lane.origin, "http://127.0.0.1:9");
      const claim = async (limit: number, now: number) =>
        (await store.engine.claimDue([{ lane, limit }], now))[0]!;

      assert.deepEqual(await claim(5, NOW), { claims: [], nextDueAt: NOW + 10, heldUntil: null });
      const first = await claim(1, NOW + 50);
      assert.deepEqual([first.claims.map(({ job }) => job.id), first.nextDueAt], [[early!.id], NOW + 20]);
      const second = await claim(5, NOW + 50);
      assert.deepEqual([second.claims.map(({ job }) => job.id), second.nextDueAt], [[late!.id], NOW + 99]);
      assert.deepEqual(
        (await claim(5, NOW + 99)).claims.map(({ job }) => job.id),
        [future!.id],
      );
      assert.deepEqual(await claim(5, NOW + 99), { claims: [], nextDueAt: null, heldUntil: null });

      const { job, payload } = first.claims[0]!;
      assert.deepEqual([job.status, job.attempts, job.startedAt], ["active", 1, NOW + 50]);
      assert.equal(payload?.text, `{"n":1.0}`);
      const {
        payload: _payload,
        response: _response,
        steps: _steps,
        ...stored
      } = (await store.jobs.get(TENANT, job.id))!;
      assert.deepEqual(stored, job);
    });

    test("leaves alone what is cancelled or waits for approval", async () => {
      const store = await open();
      const [job] = await enqueue(store, newJob(NOW), newJob(NOW, { requiresApproval: true }));
      await store.jobs.change(TENANT, job!.id, (found) => cancel(found, NOW));
      assert.deepEqual(await claimAll(store, NOW), []);
      assert.deepEqual(await store.engine.lanes(), []);
    });

    test("no two claims at once get the same job", async () => {
      const store = await open();
      await enqueue(store, ...Array.from({ length: 20 }, () => newJob(NOW)));
      const rounds = await Promise.all(Array.from({ length: 5 }, () => claimAll(store, NOW, 5)));
      const ids = rounds.flat().map(({ job }) => job.id);
      assert.equal(ids.length, 20);
      assert.equal(new Set(ids).size, 20);
    });

    test("never more than the queue's rate limit in any one period", async () => {
      const store = await open();
      await store.queues.configure(TENANT, "default", { rateLimit: { limit: 3, period: "10s" } }, NOW);
      await enqueue(store, ...Array.from({ length: 8 }, () => newJob(NOW)));
      const { lane } = (await store.engine.lanes())[0]!;
      const claim = async (now: number) => {
        const { claims, heldUntil } = (await store.engine.claimDue([{ lane, limit: 2 }], now))[0]!;
        return [claims.length, heldUntil];
      };
      assert.deepEqual(await claim(NOW), [2, null]);
      assert.deepEqual(await claim(NOW + 4_000), [1, NOW + 10_000]);
      assert.deepEqual(await claim(NOW + 9_999), [0, NOW + 10_000]);
      assert.deepEqual((await claim(NOW + 10_000))[0], 2);
      assert.deepEqual(await claim(NOW + 10_000), [0, NOW + 14_000]);

      // Lowered to less than has begun already.
      await store.queues.configure(TENANT, "default", { rateLimit: { limit: 1, period: "10s" } }, NOW);
      assert.deepEqual(await claim(NOW + 14_000), [0, NOW + 20_000]);
      assert.deepEqual((await claim(NOW + 20_000))[0], 1);
    });
  });

  describe("settle", () => {
    test("stores the outcome, the attempt and the response", async () => {
      const store = await open();
      const [job] = await enqueue(store, newJob(NOW));
      const [claim] = await claimAll(store, NOW);
      const outcome = response(201, { "content-type": "text/plain" }, "hello");
      assert.equal(await store.engine.settle(claim!, outcomeOf(claim!, outcome, NOW + 9)), true);
      const stored = await store.jobs.get(TENANT, job!.id);
      assert.deepEqual(
        [stored?.status, stored?.responseCode, stored?.finishedAt, stored?.durationMs],
        ["completed", 201, NOW + 9, 5],
      );
      assert.equal(Buffer.from(stored!.response!.body).toString(), "hello");
      const attempts = (await store.jobs.attempts(TENANT, job!.id, ALL))?.items;
      assert.equal(attempts?.length, 1);
      assert.deepEqual(
        [attempts?.[0]?.number, attempts?.[0]?.startedAt, attempts?.[0]?.response?.code],
        [1, NOW, 201],
      );
    });

    test("attempts have pages, oldest first, which end early where the responses are large", async () => {
      const store = await open();
      const [job] = await enqueue(store, newJob(NOW, { rules: { ...newJob(NOW).rules, maxAttempts: 100 } }));
      const large = "x".repeat(1024 * 1024);
      for (let i = 0; i < 25; i++) {
        const [claim] = await claimAll(store, NOW + i * 3_600_000);
        const outcome = response(500, {}, i < 12 ? large : "");
        await store.engine.settle(claim!, outcomeOf(claim!, outcome, NOW + i * 3_600_000));
      }
      const pages: number[][] = [];
      let cursor: string | null = null;
      do {
        const page: Page<Attempt> | null = await store.jobs.attempts(TENANT, job!.id, { limit: 10, cursor });
        pages.push(page!.items.map(({ number }) => number));
        cursor = page!.nextCursor;
      } while (cursor !== null);
      assert.deepEqual(
        pages.flat(),
        Array.from({ length: 25 }, (_, i) => i + 1),
      );
      assert.deepEqual(
        pages.map(({ length }) => length),
        [9, 10, 6],
      );
    });

    test("the fence: a late or repeated outcome changes nothing", async () => {
      const store = await open();
      const [job] = await enqueue(store, newJob(NOW));
      const [first] = await claimAll(store, NOW);
      assert.equal(await store.engine.settle(first!, outcomeOf(first!, failure(), NOW)), true);
      const [second] = await claimAll(store, NOW + 60_000);
      const before = await store.jobs.get(TENANT, job!.id);
      // The first attempt's outcome comes once more, while the second is under way.
      assert.equal(await store.engine.settle(first!, outcomeOf(first!, response(200), NOW)), false);
      assert.deepEqual(await store.jobs.get(TENANT, job!.id), before);
      const both = await Promise.all([
        store.engine.settle(second!, outcomeOf(second!, response(200), NOW)),
        store.engine.settle(second!, outcomeOf(second!, response(500), NOW)),
      ]);
      assert.deepEqual(both, [true, false]);
      assert.equal((await store.jobs.get(TENANT, job!.id))?.status, "completed");
      assert.equal((await store.jobs.attempts(TENANT, job!.id, ALL))?.items.length, 2);
    });

    test("the fence: an outcome of a job that is gone does not count for one that came after it", async () => {
      const store = await open();
      await enqueue(store, newJob(NOW));
      const [first] = await claimAll(store, NOW, 1);
      const outcome = outcomeOf(first!, failure(), NOW);
      assert.equal(await store.engine.settle(first!, outcomeOf(first!, response(200), NOW)), true);
      await store.maintenance.prune(NOW + 1, NOW);
      const [next] = await enqueue(store, newJob(NOW));
      await claimAll(store, NOW, 1);
      assert.equal(await store.engine.settle(first!, outcome), false);
      assert.equal((await store.jobs.get(TENANT, next!.id))?.status, "active");
    });

    test("a pipeline moves to its next step, in that origin's lane, with what came before", async () => {
      const store = await open();
      const steps = [newStep("a"), newStep("b", { url: "http://127.0.0.2:9/b", requiresApproval: false })];
      const [job] = await enqueue(store, newPipeline(NOW, steps));
      const [first] = await claimAll(store, NOW);
      assert.equal(first?.pipeline?.next?.name, "b");
      await store.engine.settle(first, outcomeOf(first, response(200, {}, "one"), NOW));
      // The fence holds between steps too: the counts start again at 1.
      const [second] = await claimAll(store, NOW);
      assert.deepEqual(
        [second?.job.step, second?.job.attempts, second?.lane.origin],
        [1, 1, "http://127.0.0.2:9"],
      );
      assert.equal(await store.engine.settle(first, outcomeOf(first, response(200), NOW)), false);
      assert.equal(Buffer.from(second!.pipeline!.results.get("a")!.body).toString(), "one");
      await store.engine.settle(second!, outcomeOf(second!, response(200, {}, "two"), NOW));
      const ended = await store.jobs.get(TENANT, job!.id);
      assert.equal(ended?.status, "completed");
      assert.deepEqual(
        ended?.steps.map(({ attempts, response: answer }) => [
          attempts,
          Buffer.from(answer!.body).toString(),
        ]),
        [
          [1, "one"],
          [1, "two"],
        ],
      );
    });

    test("the end of a job with callback_url makes a job that tells it, and that nobody lists", async () => {
      const store = await open();
      const [job] = await enqueue(store, newJob(NOW, { callbackUrl: "http://127.0.0.3:9/done" }));
      const [claim] = await claimAll(store, NOW);
      await store.engine.settle(claim!, outcomeOf(claim!, response(200), NOW));
      const [callback] = await claimAll(store, NOW);
      assert.equal(callback?.callbackOf, job!.id);
      assert.match(callback?.payload?.text ?? "", /"type":"job.completed"/);
      assert.equal((await store.jobs.list(TENANT, {}, { limit: 9, cursor: null })).items.length, 1);
      assert.equal(await store.jobs.get(TENANT, callback.job.id), null);
      assert.equal((await store.jobs.get(TENANT, job!.id))?.callback?.status, "pending");
      await store.engine.settle(callback, outcomeOf(callback, response(200), NOW));
      assert.equal((await store.jobs.get(TENANT, job!.id))?.callback?.status, "delivered");
      assert.deepEqual(await store.queues.usage(TENANT, "2026-01"), [
        { day: "2026-01-05", jobs: 1, deliveries: 1 },
      ]);
    });
  });

  test("recover settles every attempt that was left active, of every tenant", async () => {
    const store = await open();
    await enqueue(store, ...Array.from({ length: 1_200 }, () => newJob(NOW)));
    await store.jobs.enqueue({ ...TENANT, mode: "live" }, [newJob(NOW)], NOW, null);
    const claims = await claimAll(store, NOW, 2_000);
    assert.equal(claims.length, 1_201);
    const rule: Parameters<Store["engine"]["recover"]>[0] = (job, step) => interrupt(job, step, NOW + 5);
    assert.equal(await store.engine.recover(rule), 1_201);
    assert.equal(await store.engine.recover(rule), 0);
    const job = await store.jobs.get(TENANT, claims[0]!.job.id);
    assert.deepEqual(
      [job?.status, job?.deaths, job?.spent, job?.attempts, job?.dueAt],
      ["pending", 1, 0, 1, NOW + 5],
    );
    assert.equal(await store.engine.settle(claims[0]!, outcomeOf(claims[0]!, response(200), NOW)), false);
  });

  describe("changes", () => {
    test("are told after the commit, in order, and lanes are told when something is due", async () => {
      const store = await open();
      const heard: Change[] = [];
      const stop = store.subscribe((changes) => heard.push(...changes));
      const [job] = await enqueue(store, newJob(NOW, { runAt: NOW + 5 }));
      const [claim] = await claimAll(store, NOW + 5);
      await store.engine.settle(claim!, outcomeOf(claim!, failure(), NOW + 9));
      await store.jobs.change(TENANT, job!.id, (found) => cancel(found, NOW));
      assert.deepEqual(
        heard.filter(({ kind }) => kind === "job").map((change: any) => [change.previous, change.status]),
        [
          [null, "pending"],
          ["pending", "active"],
          ["active", "pending"],
          ["pending", "cancelled"],
        ],
      );
      assert.deepEqual(
        heard.filter(({ kind }) => kind === "lane").map((change: any) => change.dueAt),
        [NOW + 5, NOW + 20_009],
      );
      stop();
      await enqueue(store, newJob(NOW));
      assert.equal(heard.length, 6);
    });

    test("nothing is told of a command that failed", async () => {
      const store = await open();
      const [job] = await enqueue(store, newJob(NOW));
      const heard: Change[] = [];
      store.subscribe((changes) => heard.push(...changes));
      await assert.rejects(enqueue(store, newJob(NOW), { ...newJob(NOW), id: job!.id }));
      assert.deepEqual(heard, []);
    });
  });

  describe("housekeeping", () => {
    test("approvals that ran out are decided by the rule, and the next one is told", async () => {
      const store = await open();
      const [soon] = await enqueue(
        store,
        newJob(NOW, { requiresApproval: true, approvalTimeout: "1m", callbackUrl: "http://127.0.0.1:9/" }),
        newJob(NOW, { requiresApproval: true, approvalTimeout: "1h" }),
        newJob(NOW, { requiresApproval: true }),
        // One that is merely due is not asked about.
        newJob(NOW),
      );
      const expire = (now: number) =>
        store.maintenance.expireApprovals(now, (job) => reject(job, "system", null, now));
      assert.equal(await expire(NOW), NOW + 60_000);
      assert.equal(await expire(NOW + 60_000), NOW + 3_600_000);
      const job = await store.jobs.get(TENANT, soon!.id);
      assert.deepEqual([job?.status, job?.rejectedBy], ["cancelled", "system"]);
      assert.equal(job?.callback?.status, "pending");
      assert.equal(await expire(NOW + 3_600_000), null);
    });

    test("retention removes what ended before the limit, and nothing else", async () => {
      const store = await open();
      const jobs = await enqueue(store, ...Array.from({ length: 450 }, () => newJob(NOW)));
      const claims = await claimAll(store, NOW, 1_000);
      for (const [i, claim] of claims.entries()) {
        const endedAt = i < 300 ? NOW + 1_000 : NOW + 9_000;
        await store.engine.settle(claim, outcomeOf(claim, response(200, {}, "x"), endedAt));
      }
      const [open1] = await enqueue(store, newJob(NOW));
      let rounds = 0;
      while (await store.maintenance.prune(NOW + 5_000, NOW)) assert.ok(++rounds < 50, "comes to an end");
      const page = await store.jobs.list(TENANT, {}, { limit: 1_000, cursor: null });
      assert.equal(page.items.length, 151);
      assert.ok(page.items.some(({ id }) => id === open1!.id));
      assert.equal(await store.jobs.get(TENANT, jobs[0]!.id), null);
      assert.equal((await store.queues.get(TENANT, "default", NOW))?.counts.completed, 150);
    });

    test("retention keeps what its dedupe_key has to find, and no longer", async () => {
      const store = await open();
      const keyed = (at: number) => newJob(at, { dedupeKey: "k", dedupeWindow: "1h" });
      const [first] = await enqueue(store, keyed(NOW));
      const [claim] = await claimAll(store, NOW, 1);
      await store.engine.settle(claim!, outcomeOf(claim!, response(200, {}, ""), NOW));
      const repeated = async (now: number) => {
        await store.maintenance.prune(now - 1_000, now);
        const { value } = (await store.jobs.enqueue(TENANT, [keyed(now)], now, null)) as any;
        return value[0].deduplicated;
      };
      assert.equal(await repeated(NOW + 3_599_999), true);
      assert.equal((await store.jobs.get(TENANT, first!.id))?.status, "completed");
      assert.equal(await repeated(NOW + 3_600_000), false);
      assert.equal(await store.jobs.get(TENANT, first!.id), null);
    });

    test("a cancelled job, which no dedupe_key finds, is not kept for it", async () => {
      const store = await open();
      const [job] = await enqueue(store, newJob(NOW, { dedupeKey: "k", dedupeWindow: "30d" }));
      await store.jobs.change(TENANT, job!.id, (current) => cancel(current, NOW));
      await store.maintenance.prune(NOW + 1, NOW + 3_600_000);
      assert.equal(await store.jobs.get(TENANT, job!.id), null);
    });

    test("jobs that a clock ahead of its time made do not keep retention from older ones", async () => {
      const store = await open();
      const [later, year] = [NOW + 60 * 86_400_000, NOW + 365 * 86_400_000];
      for (const [count, now] of [
        [250, year],
        [300, NOW],
      ] as const) {
        await store.jobs.enqueue(
          TENANT,
          Array.from({ length: count }, () => newJob(now)),
          now,
          null,
        );
        await store.jobs.changeAll(TENANT, {}, ["pending"], (job) => cancel(job, now));
      }
      let rounds = 0;
      while (await store.maintenance.prune(later - 86_400_000, later))
        assert.ok(++rounds < 50, "comes to an end");
      assert.equal((await store.queues.get(TENANT, "default", later))?.counts.cancelled, 250);
    });

    test("held is remembered", async () => {
      const store = await open();
      assert.equal(await store.maintenance.isHeld(), false);
      await store.maintenance.hold(true);
      assert.equal(await store.maintenance.isHeld(), true);
      await store.maintenance.hold(false);
      assert.equal(await store.maintenance.isHeld(), false);
    });
  });
}
