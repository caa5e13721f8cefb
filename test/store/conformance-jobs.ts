/** What any store has to keep of its promises about jobs: run against an adapter by sqlite.test.ts. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { Problem } from "../../src/base/errors.ts";
import { RawJson } from "../../src/base/json.ts";
import type { JobDetail, NewJob } from "../../src/jobs/job.ts";
import { approve, cancel, reject, retry } from "../../src/jobs/lifecycle.ts";
import type { Enqueued, Once, OnceResult, Store } from "../../src/store/store.ts";
import { newJob, newPipeline, newStep, TENANT } from "../support/factories.ts";

const NOW = Date.parse("2026-01-05T00:00:00Z");
const OTHERS = [
  { accountId: TENANT.accountId, mode: "live" },
  { accountId: "acct_other", mode: "test" },
] as const;

/** Jobs that one command made. */
export async function enqueue(store: Store, ...jobs: NewJob[]): Promise<readonly JobDetail[]> {
  return value(await store.jobs.enqueue(TENANT, jobs, jobs[0]?.runAt ?? NOW, null)).map(({ job }) => job);
}

export function value<T>(result: OnceResult<T>): T {
  assert.ok("value" in result, "not a replay");
  return result.value;
}

export function jobConformance(open: () => Promise<Store>): void {
  describe("enqueue and get", () => {
    test("a job reads back as it was answered, its payload byte for byte", async () => {
      const store = await open();
      const payload = new RawJson(`{"b":1.0,"a":[9007199254740993,"\\u00e9\\ud800"]}`);
      const given = newJob(NOW, {
        payload,
        tags: ["a", "b"],
        queue: "mail",
        runAt: NOW + 5,
        callbackUrl: "http://127.0.0.1/c",
        target: {
          url: "http://127.0.0.1/x?y",
          method: "PUT",
          headers: { authorization: "Bearer s", "x-a": "1" },
        },
        rules: { maxAttempts: 7, timeout: "5s", retryDelays: ["1s", "2m"], noRetryOn: [404, "5xx"] },
      });
      const [job] = await enqueue(store, given);
      assert.deepEqual(await store.jobs.get(TENANT, given.id), job);
      assert.equal(job?.payload?.text, payload.text);
      assert.deepEqual(job?.target, given.target);
      assert.deepEqual(job?.task, { ...given.target, ...given.rules });
    });

    test("a pipeline reads back as it was answered", async () => {
      const store = await open();
      const steps = [
        newStep("a", { payload: new RawJson("1.0") }),
        newStep("b", { delay: "5m", requiresApproval: true }),
      ];
      const [job] = await enqueue(store, newPipeline(NOW, steps));
      assert.deepEqual(await store.jobs.get(TENANT, job!.id), job);
      assert.deepEqual(
        job?.steps.map((step) => [step.name, step.payload?.text, step.delay]),
        [
          ["a", "1.0", null],
          ["b", undefined, "5m"],
        ],
      );
    });

    test("no payload and the payload null are not the same", async () => {
      const store = await open();
      const [none, empty] = await enqueue(
        store,
        newJob(NOW, { payload: null }),
        newJob(NOW, { payload: new RawJson("null") }),
      );
      assert.equal((await store.jobs.get(TENANT, none!.id))?.payload, null);
      assert.equal((await store.jobs.get(TENANT, empty!.id))?.payload?.text, "null");
    });

    test("all jobs are made or none", async () => {
      const store = await open();
      const job = newJob(NOW);
      await assert.rejects(enqueue(store, job, newJob(NOW), { ...newJob(NOW), id: job.id }));
      assert.equal(await store.jobs.get(TENANT, job.id), null);
      const [good] = await enqueue(store, newJob(NOW));
      assert.ok(good, "a failed command does no harm to the next");
    });

    test("a command that fails does not fail those of the same turn", async () => {
      const store = await open();
      const [first] = await enqueue(store, newJob(NOW));
      const results = await Promise.allSettled([
        enqueue(store, newJob(NOW)),
        enqueue(store, { ...newJob(NOW), id: first!.id }),
        enqueue(store, newJob(NOW)),
      ]);
      assert.deepEqual(
        results.map(({ status }) => status),
        ["fulfilled", "rejected", "fulfilled"],
      );
      const page = await store.jobs.list(TENANT, {}, { limit: 10, cursor: null });
      assert.equal(page.items.length, 3);
    });

    test("jobs of another account or mode do not exist", async () => {
      const store = await open();
      const [job] = await enqueue(store, newJob(NOW));
      for (const tenant of OTHERS) {
        assert.equal(await store.jobs.get(tenant, job!.id), null);
        assert.equal(await store.jobs.attempts(tenant, job!.id, { limit: 9, cursor: null }), null);
        assert.equal(await store.jobs.change(tenant, job!.id, (found) => cancel(found, NOW)), null);
        assert.deepEqual((await store.jobs.list(tenant, {}, { limit: 9, cursor: null })).items, []);
        assert.equal(await store.jobs.changeAll(tenant, {}, ["pending"], (found) => cancel(found, NOW)), 0);
      }
      assert.equal((await store.jobs.get(TENANT, job!.id))?.status, "pending");
    });
  });

  describe("dedupe_key", () => {
    const keyed = (at: number, fields = {}) => newJob(at, { dedupeKey: "k", dedupeWindow: "1h", ...fields });
    const make = async (store: Store, job: NewJob, now: number) =>
      value(await store.jobs.enqueue(TENANT, [job], now, null))[0]!;

    test("finds an unfinished job of any age, and a finished one within the window", async () => {
      const store = await open();
      const first = await make(store, keyed(NOW), NOW);
      assert.equal(first.deduplicated, false);
      const day = NOW + 24 * 3_600_000;
      const second = await make(store, keyed(day, { queue: "other" }), day);
      assert.deepEqual([second.deduplicated, second.job.id], [true, first.job.id]);
      assert.equal((await make(store, newJob(day, { dedupeKey: "other" }), day)).deduplicated, false);
    });

    test("does not find a cancelled one, nor one of another tenant", async () => {
      const store = await open();
      const first = await make(store, keyed(NOW), NOW);
      const [elsewhere] = value(await store.jobs.enqueue(OTHERS[0], [keyed(NOW)], NOW, null));
      assert.equal(elsewhere?.deduplicated, false);
      await store.jobs.change(TENANT, first.job.id, (job) => cancel(job, NOW));
      assert.equal((await make(store, keyed(NOW), NOW)).deduplicated, false);
    });

    test("a batch that would repeat too much of what is stored is refused whole", async () => {
      const store = await open();
      const payload = new RawJson(JSON.stringify("x".repeat(1024 * 1024)));
      const first = await make(store, keyed(NOW, { payload }), NOW);
      const batch = (repeats: number) => [newJob(NOW), ...Array.from({ length: repeats }, () => keyed(NOW))];
      await assert.rejects(store.jobs.enqueue(TENANT, batch(16), NOW, null), /smaller batches/);
      assert.equal((await store.jobs.list(TENANT, {}, { limit: 9, cursor: null })).items.length, 1);
      const made = value(await store.jobs.enqueue(TENANT, batch(15), NOW, null));
      assert.deepEqual(
        made.map(({ deduplicated }) => deduplicated),
        [false, ...Array.from({ length: 15 }, () => true)],
      );
      assert.equal(made.at(-1)?.job.id, first.job.id);
    });

    test("headers count for what a batch would repeat, also those of a job that it makes itself", async () => {
      const store = await open();
      const headers = Object.fromEntries(Array.from({ length: 49 }, (_, i) => [`x-${i}`, "a".repeat(8_192)]));
      const large = newPipeline(NOW, [newStep("a", { headers }), newStep("b", { headers })], {
        dedupeKey: "k",
      });
      const batch = (repeats: number) => [large, ...Array.from({ length: repeats }, () => keyed(NOW))];
      await assert.rejects(store.jobs.enqueue(TENANT, batch(999), NOW, null), /smaller batches/);
      assert.equal((await store.jobs.list(TENANT, {}, { limit: 9, cursor: null })).items.length, 0);
      assert.equal(value(await store.jobs.enqueue(TENANT, batch(20), NOW, null)).length, 21);
    });

    test("two in one batch are one job", async () => {
      const store = await open();
      const made = value(await store.jobs.enqueue(TENANT, [keyed(NOW), keyed(NOW)], NOW, null));
      assert.equal(made[0]?.job.id, made[1]?.job.id);
    });
  });

  describe("Idempotency-Key", () => {
    const once = (key: string, fingerprint = "f"): Once<readonly Enqueued[]> => ({
      key,
      fingerprint,
      answer: (made) => ({ status: 201, headers: { location: "/x" }, body: `{"id":"${made[0]?.job.id}"}` }),
    });

    test("fifty at once make one job and fifty equal answers", async () => {
      const store = await open();
      const results = await Promise.all(
        Array.from({ length: 50 }, () => store.jobs.enqueue(TENANT, [newJob(NOW)], NOW, once("k"))),
      );
      const made = results.filter((result) => "value" in result);
      assert.equal(made.length, 1);
      const first = made[0]!;
      const body = "value" in first ? `{"id":"${first.value[0]?.job.id}"}` : "";
      for (const result of results)
        if ("replay" in result)
          assert.deepEqual(result.replay, { status: 201, headers: { location: "/x" }, body });
      assert.equal((await store.jobs.list(TENANT, {}, { limit: 9, cursor: null })).items.length, 1);
    });

    test("another request under the same key is refused; another tenant or a day later is not", async () => {
      const store = await open();
      await store.jobs.enqueue(TENANT, [newJob(NOW)], NOW, once("k"));
      await assert.rejects(
        store.jobs.enqueue(TENANT, [newJob(NOW)], NOW, once("k", "other")),
        (error) => error instanceof Problem && error.code === "idempotency_key_reused",
      );
      value(await store.jobs.enqueue(OTHERS[0], [newJob(NOW)], NOW, once("k", "other")));
      const later = NOW + 24 * 3_600_000;
      value(await store.jobs.enqueue(TENANT, [newJob(later)], later, once("k", "other")));
    });
  });

  describe("list", () => {
    test("newest first, page by page, steady while jobs come", async () => {
      const store = await open();
      const jobs = await enqueue(store, ...Array.from({ length: 25 }, () => newJob(NOW)));
      const seen: string[] = [];
      let cursor: string | null = null;
      do {
        const page: Awaited<ReturnType<Store["jobs"]["list"]>> = await store.jobs.list(
          TENANT,
          {},
          {
            limit: 10,
            cursor,
          },
        );
        seen.push(...page.items.map(({ id }) => id));
        cursor = page.nextCursor;
        await enqueue(store, newJob(NOW));
      } while (cursor !== null);
      assert.deepEqual(seen, jobs.map(({ id }) => id).toReversed());
    });

    test("each filter, and all of them together", async () => {
      const store = await open();
      const scheduleId = "sch_1";
      const [plain, tagged, , pipeline] = await enqueue(
        store,
        newJob(NOW, { url: "http://a.test/one%" }),
        newJob(NOW, { url: "http://b.test/two", tags: ["x", "y"], queue: "mail", scheduleId }),
        newJob(NOW, { url: "http://c.test/three", tags: ["xy"] }),
        newPipeline(NOW, [newStep("a", { url: "http://d.test/four" })]),
      );
      await store.jobs.change(TENANT, plain!.id, (job) => cancel(job, NOW));
      const list = async (filter: Parameters<Store["jobs"]["list"]>[1]) =>
        (await store.jobs.list(TENANT, filter, { limit: 10, cursor: null })).items.map(({ id }) => id);
      assert.deepEqual(await list({ statuses: ["cancelled"] }), [plain!.id]);
      assert.equal((await list({ statuses: ["cancelled", "pending"] })).length, 4);
      assert.deepEqual(await list({ queue: "mail" }), [tagged!.id]);
      assert.deepEqual(await list({ queue: "none" }), []);
      assert.deepEqual(await list({ tag: "x" }), [tagged!.id]);
      assert.deepEqual(await list({ scheduleId }), [tagged!.id]);
      assert.deepEqual(await list({ urlContains: "one%" }), [plain!.id]);
      assert.deepEqual(await list({ urlContains: "d.test" }), [pipeline!.id]);
      assert.equal((await list({ createdAfter: NOW - 1, createdBefore: NOW + 1 })).length, 4);
      assert.deepEqual(await list({ createdAfter: NOW }), []);
      assert.deepEqual(await list({ statuses: ["pending"], queue: "mail", tag: "y", urlContains: "two" }), [
        tagged!.id,
      ]);
    });

    test("row numbers without a job cost nothing, wherever a cursor begins", async () => {
      const store = await open();
      await enqueue(store, newJob(NOW));
      let turns = 0;
      let next = setImmediate(function count() {
        turns += 1;
        next = setImmediate(count);
      });
      const page = await store.jobs.list(TENANT, { tag: "none" }, { limit: 1, cursor: "999999999999" });
      clearImmediate(next);
      assert.deepEqual([page.items, page.nextCursor], [[], null]);
      assert.ok(turns < 10, `it took ${turns} turns of the loop`);
    });

    test("a cursor that is none is refused", async () => {
      const store = await open();
      await assert.rejects(store.jobs.list(TENANT, {}, { limit: 1, cursor: "x' OR 1" }), Problem);
    });
  });

  describe("change", () => {
    test("writes what the rule answers, and refuses what it refuses", async () => {
      const store = await open();
      const [job] = await enqueue(store, newJob(NOW, { requiresApproval: true }));
      const approved = await store.jobs.change(TENANT, job!.id, (found, step) =>
        approve(found, step, "me", "ok", NOW + 1),
      );
      assert.deepEqual(
        [approved?.status, approved?.approvedBy, approved?.approvalNote, approved?.dueAt],
        ["pending", "me", "ok", NOW + 1],
      );
      assert.deepEqual(await store.jobs.get(TENANT, job!.id), approved);
      await assert.rejects(
        store.jobs.change(TENANT, job!.id, (found) => reject(found, "me", null, NOW)),
        (error) => error instanceof Problem && error.code === "not_approvable",
      );
      assert.deepEqual(await store.jobs.get(TENANT, job!.id), approved);
      assert.equal(await store.jobs.change(TENANT, "job_none", (found) => cancel(found, NOW)), null);
    });

    test("of two at once that exclude each other one wins", async () => {
      const store = await open();
      const [job] = await enqueue(store, newJob(NOW, { requiresApproval: true }));
      const results = await Promise.allSettled([
        store.jobs.change(TENANT, job!.id, (found, step) => approve(found, step, "a", null, NOW)),
        store.jobs.change(TENANT, job!.id, (found) => reject(found, "b", null, NOW)),
      ]);
      assert.deepEqual(
        results.map(({ status }) => status),
        ["fulfilled", "rejected"],
      );
    });

    test("in bulk: every match of these states, once", async () => {
      const store = await open();
      const jobs = Array.from({ length: 450 }, (_, i) => newJob(NOW, { tags: i % 3 === 0 ? ["x"] : [] }));
      await enqueue(store, ...jobs);
      assert.equal(
        await store.jobs.changeAll(TENANT, { tag: "x" }, ["pending", "awaiting_approval"], (job) =>
          cancel(job, NOW),
        ),
        150,
      );
      assert.equal(
        await store.jobs.changeAll(TENANT, {}, ["failed", "cancelled"], (job, step) => retry(job, step, NOW)),
        150,
      );
      const queue = await store.queues.get(TENANT, "default", NOW);
      assert.deepEqual([queue?.counts.pending, queue?.counts.cancelled], [450, 0]);
    });
  });
}
