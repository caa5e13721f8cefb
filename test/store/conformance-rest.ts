/** What any store has to keep of its promises about schedules, queues and accounts: run by sqlite.test.ts. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { newSigningSecret } from "../../src/accounts/signing-secret.ts";
import { Problem } from "../../src/base/errors.ts";
import { newId } from "../../src/base/ids.ts";
import { RawJson } from "../../src/base/json.ts";
import { cancel } from "../../src/jobs/lifecycle.ts";
import type { Firing } from "../../src/schedules/run.ts";
import type { Schedule } from "../../src/schedules/schedule.ts";
import type { Change, Page, Store } from "../../src/store/store.ts";
import { aSchedule, newJob, newStep, response, TENANT } from "../support/factories.ts";
import { addAccount } from "../support/store.ts";
import { claimAll, outcomeOf } from "./conformance-engine.ts";
import { enqueue, value } from "./conformance-jobs.ts";

const NOW = Date.parse("2026-01-05T00:00:00Z");
const DAY = 86_400_000;
const LIVE = { accountId: TENANT.accountId, mode: "live" } as const;

/** The schedule's due time makes one job. */
function firing(schedule: Schedule, nextRunAt: number | null, requiresApproval = false): Firing {
  const dueAt = schedule.nextRunAt!;
  const job = newJob(dueAt, { scheduleId: schedule.id, scheduledFor: dueAt, requiresApproval });
  const occurrence = { scheduledFor: dueAt, outcome: "fired", latenessMs: 0, job } as const;
  return { dueAt, occurrences: [occurrence], nextRunAt };
}

export function scheduleConformance(open: () => Promise<Store>): void {
  describe("schedules", () => {
    test("read back as they were given, payload bytes and secret headers included", async () => {
      const store = await open();
      const base = aSchedule(NOW);
      const schedule = aSchedule(NOW, {
        name: "nightly",
        onMissed: "all",
        onOverlap: "skip",
        startsAt: NOW,
        endsAt: NOW + 1,
        job: {
          ...base.job,
          payload: new RawJson(`{"a":1.0,"a":2}`),
          target: { url: "http://x.test/", method: "PUT", headers: { authorization: "Bearer s" } },
          tags: ["a"],
        },
      });
      value(await store.schedules.create(schedule, null));
      assert.deepEqual(await store.schedules.get(TENANT, schedule.id), schedule);
      const pipeline = aSchedule(NOW, {
        job: {
          ...base.job,
          target: null,
          payload: new RawJson("null"),
          steps: [newStep("a"), newStep("b", { payload: new RawJson("1.0") })],
        },
      });
      value(await store.schedules.create(pipeline, null));
      assert.deepEqual(await store.schedules.get(TENANT, pipeline.id), pipeline);
    });

    test("of another tenant do not exist; names are taken per tenant", async () => {
      const store = await open();
      const schedule = aSchedule(NOW, { name: "a" });
      value(await store.schedules.create(schedule, null));
      assert.equal(await store.schedules.get(LIVE, schedule.id), null);
      assert.equal(
        await store.schedules.update(LIVE, schedule.id, (found) => ({ ...found, paused: true })),
        null,
      );
      assert.equal(await store.schedules.remove(LIVE, schedule.id, NOW), false);
      assert.equal(await store.schedules.occurrences(LIVE, schedule.id, { limit: 1, cursor: null }), null);
      value(await store.schedules.create({ ...aSchedule(NOW, { name: "a" }), tenant: LIVE }, null));
      await assert.rejects(
        store.schedules.create(aSchedule(NOW, { name: "a" }), null),
        (error) => error instanceof Problem && error.code === "name_taken",
      );
    });

    test("by its name a schedule is made, or the one that has the name is changed; two at once make one", async () => {
      const store = await open();
      const replace = (tenant = TENANT as Schedule["tenant"]) =>
        store.schedules.createOrUpdate(
          tenant,
          "a",
          () => ({ ...aSchedule(NOW, { name: "a" }), tenant }),
          (found) => ({ ...found, paused: true, nextRunAt: null }),
        );
      const [first, second] = await Promise.all([replace(), replace()]);
      assert.equal(first.previous, null);
      assert.deepEqual(second.previous, first.schedule);
      assert.deepEqual([second.schedule.id, second.schedule.paused], [first.schedule.id, true]);
      assert.deepEqual(await store.schedules.get(TENANT, first.schedule.id), second.schedule);
      assert.equal((await replace(LIVE)).previous, null);
    });

    test("a trigger makes a job besides the due times, and leaves those alone", async () => {
      const store = await open();
      const schedule = value(await store.schedules.create(aSchedule(NOW), null));
      const run = ({ id }: Schedule) => newJob(NOW, { scheduleId: id });
      const made = await store.schedules.trigger(TENANT, schedule.id, run, NOW, null);
      assert.equal(value(made!).scheduleId, schedule.id);
      assert.equal((await store.schedules.get(TENANT, schedule.id))?.nextRunAt, schedule.nextRunAt);
      assert.equal(await store.schedules.trigger(LIVE, schedule.id, run, NOW, null), null);
    });

    test("a firing makes the job, the line of the ledger and the next due time together, once", async () => {
      const store = await open();
      const schedule = value(await store.schedules.create(aSchedule(NOW), null));
      const dueAt = schedule.nextRunAt!;
      assert.equal(await store.schedules.nextDueAt(), dueAt);
      assert.deepEqual(await store.schedules.due(dueAt - 1, 10), []);
      const [due] = await store.schedules.due(dueAt, 10);
      const both = await Promise.all([
        store.schedules.fire([{ schedule: due!, firing: firing(due!, dueAt + 60_000) }], dueAt),
        store.schedules.fire([{ schedule: due!, firing: firing(due!, dueAt + 60_000) }], dueAt),
      ]);
      assert.deepEqual(both, [[true], [false]]);
      const jobs = (await store.jobs.list(TENANT, { scheduleId: schedule.id }, { limit: 9, cursor: null }))
        .items;
      assert.equal(jobs.length, 1);
      assert.equal(jobs[0]?.scheduledFor, dueAt);
      const ledger = await store.schedules.occurrences(TENANT, schedule.id, { limit: 9, cursor: null });
      assert.deepEqual(ledger?.items, [
        { scheduledFor: dueAt, outcome: "fired", jobId: jobs[0]?.id, latenessMs: 0 },
      ]);
      const after = await store.schedules.get(TENANT, schedule.id);
      assert.deepEqual(
        [after?.nextRunAt, after?.lastRunAt, after?.lastJobId],
        [dueAt + 60_000, dueAt, jobs[0]?.id],
      );
    });

    test("a schedule that was changed or removed meanwhile does not fire by its old time", async () => {
      const store = await open();
      const schedule = value(await store.schedules.create(aSchedule(NOW), null));
      await store.schedules.update(TENANT, schedule.id, (found) => ({ ...found, nextRunAt: NOW + 999_000 }));
      const fire = () => store.schedules.fire([{ schedule, firing: firing(schedule, null) }], NOW);
      assert.deepEqual(await fire(), [false]);
      await store.schedules.remove(TENANT, schedule.id, NOW);
      assert.deepEqual(await fire(), [false]);
      assert.deepEqual((await store.jobs.list(TENANT, {}, { limit: 9, cursor: null })).items, []);
    });

    test("on_overlap skip makes no job while one of the schedule is unfinished", async () => {
      const store = await open();
      let schedule = value(await store.schedules.create(aSchedule(NOW, { onOverlap: "skip" }), null));
      // Jobs of no schedule, or of another one, are in nobody's way; one that waits for approval is unfinished.
      const other = value(await store.schedules.create(aSchedule(NOW), null));
      await enqueue(store, newJob(NOW), newJob(NOW, { scheduleId: other.id }));
      const fire = async () => {
        const next = firing(schedule, schedule.nextRunAt! + 60_000, true);
        await store.schedules.fire([{ schedule, firing: next }], NOW);
        schedule = (await store.schedules.get(TENANT, schedule.id))!;
      };
      await fire();
      await fire();
      const [job] = (await store.jobs.list(TENANT, {}, { limit: 9, cursor: null })).items;
      await store.jobs.change(TENANT, job!.id, (found) => cancel(found, NOW));
      await fire();
      const ledger = await store.schedules.occurrences(TENANT, schedule.id, { limit: 2, cursor: null });
      assert.deepEqual(
        ledger?.items.map(({ outcome }) => outcome),
        ["fired", "skipped_overlap"],
      );
      const rest = await store.schedules.occurrences(TENANT, schedule.id, {
        limit: 2,
        cursor: ledger.nextCursor,
      });
      assert.deepEqual(
        rest?.items.map(({ outcome }) => outcome),
        ["fired"],
      );
    });

    test("changes are told; the same object back writes and tells nothing; jobs outlive the schedule", async () => {
      const store = await open();
      const schedule = value(await store.schedules.create(aSchedule(NOW), null));
      const heard: Change[] = [];
      store.subscribe((changes) => heard.push(...changes));
      await store.schedules.update(TENANT, schedule.id, (found) => found);
      assert.equal(heard.length, 0);
      await store.schedules.update(TENANT, schedule.id, (found) => ({
        ...found,
        paused: true,
        nextRunAt: null,
      }));
      await store.schedules.update(TENANT, schedule.id, (found) => ({
        ...found,
        paused: false,
        nextRunAt: NOW,
      }));
      const [due] = await store.schedules.due(NOW, 1);
      await store.schedules.fire([{ schedule: due!, firing: firing(due!, NOW + 1) }], NOW);
      await store.schedules.remove(TENANT, schedule.id, NOW);
      assert.deepEqual(
        heard
          .filter(({ kind }) => kind === "schedule")
          .map((change: any) => [change.event, change.nextRunAt]),
        [
          ["updated", null],
          ["updated", NOW],
          ["fired", NOW + 1],
          ["deleted", null],
        ],
      );
      assert.equal((await store.jobs.list(TENANT, {}, { limit: 9, cursor: null })).items.length, 1);
      assert.equal(await store.schedules.get(TENANT, schedule.id), null);
    });

    test("list: newest first by pages; unarmed: those that should run and have no time", async () => {
      const store = await open();
      const made = Array.from({ length: 5 }, (_, i) =>
        aSchedule(NOW, i === 2 ? { nextRunAt: null } : i === 3 ? { nextRunAt: null, paused: true } : {}),
      );
      for (const schedule of made) await store.schedules.create(schedule, null);
      const first = await store.schedules.list(TENANT, { limit: 3, cursor: null });
      const second = await store.schedules.list(TENANT, { limit: 3, cursor: first.nextCursor });
      const ids = [...first.items, ...second.items].map(({ id }) => id);
      assert.deepEqual(ids, made.map(({ id }) => id).toReversed());
      assert.equal(second.nextCursor, null);
      assert.deepEqual(
        (await store.schedules.unarmed(NOW, { limit: 9, cursor: null })).items.map(({ id }) => id),
        [made[2]!.id],
      );
    });

    test("those that a wrong clock may have put off come by pages, however many they are", async () => {
      const store = await open();
      const ids: string[] = [];
      for (const nextRunAt of [NOW + 2 * DAY, NOW + 60_000, NOW + 3 * DAY, NOW + 4 * DAY, null]) {
        const schedule = aSchedule(NOW, { nextRunAt });
        await store.schedules.create(schedule, null);
        ids.push(schedule.id);
      }
      const first = await store.schedules.ahead(NOW, { limit: 2, cursor: null });
      const second = await store.schedules.ahead(NOW, { limit: 2, cursor: first.nextCursor });
      const idsOf = ({ items }: Page<Schedule>) => items.map(({ id }) => id);
      assert.deepEqual([idsOf(first), idsOf(second)], [[ids[0], ids[2]], [ids[3]]]);
      assert.equal(second.nextCursor, null);
    });
  });
}

export function queueConformance(open: () => Promise<Store>): void {
  describe("queues and usage", () => {
    test("counts follow every transition", async () => {
      const store = await open();
      const [job] = await enqueue(store, newJob(NOW), newJob(NOW, { requiresApproval: true }), newJob(NOW));
      await enqueue(store, newJob(NOW, { queue: "another" }));
      await store.jobs.change(TENANT, job!.id, (found) => cancel(found, NOW));
      const [claim] = await claimAll(store, NOW);
      const counts = async () => (await store.queues.get(TENANT, "default", NOW))?.counts;
      const none = { pending: 0, active: 0, completed: 0, failed: 0, cancelled: 1, awaiting_approval: 1 };
      assert.deepEqual(await counts(), { ...none, active: 1 });
      await store.engine.settle(claim!, outcomeOf(claim!, response(200), NOW));
      assert.deepEqual(await counts(), { ...none, completed: 1 });
    });

    test("settings that are left out stay; limits are told to the engine", async () => {
      const store = await open();
      const heard: Change[] = [];
      store.subscribe((changes) => heard.push(...changes));
      const rateLimit = { limit: 5, period: "1m" };
      await store.queues.configure(TENANT, "mail", { concurrency: 3, rateLimit }, NOW);
      const queue = await store.queues.configure(TENANT, "mail", { paused: true }, NOW);
      assert.deepEqual([queue.concurrency, queue.rateLimit, queue.paused], [3, rateLimit, true]);
      assert.deepEqual(await store.queues.get(TENANT, "mail", NOW), queue);
      assert.deepEqual(
        heard.map((change: any) => [change.limits.concurrency, change.limits.paused]),
        [
          [3, false],
          [3, true],
        ],
      );
      assert.equal((await store.engine.queueLimits()).length, 1);
      const open1 = await store.queues.configure(
        TENANT,
        "mail",
        { concurrency: null, rateLimit: null, paused: false },
        NOW,
      );
      assert.deepEqual([open1.concurrency, open1.rateLimit, open1.paused], [null, null, false]);
      assert.equal(await store.queues.get(LIVE, "mail", NOW), null);
    });

    test("the age of the oldest due job", async () => {
      const store = await open();
      await enqueue(
        store,
        newJob(NOW, { runAt: NOW + 50 }),
        newJob(NOW, { runAt: NOW + 10, url: "http://b.test/" }),
      );
      const oldest = async (now: number) =>
        (await store.queues.list(TENANT, { limit: 9, cursor: null }, now)).items[0]?.oldestDueAt;
      assert.equal(await oldest(NOW), null);
      assert.equal(await oldest(NOW + 99), NOW + 10);
    });

    test("usage counts jobs where they were made and deliveries where they began, by day", async () => {
      const store = await open();
      const late = Date.parse("2026-01-05T23:59:59.999Z");
      await store.jobs.enqueue(TENANT, [newJob(late), newJob(late)], late, null);
      await claimAll(store, late + 1);
      assert.deepEqual(await store.queues.usage(TENANT, "2026-01"), [
        { day: "2026-01-05", jobs: 2, deliveries: 0 },
        { day: "2026-01-06", jobs: 0, deliveries: 2 },
      ]);
      assert.deepEqual(await store.queues.usage(LIVE, "2026-01"), []);
      assert.deepEqual(await store.queues.usage(TENANT, "2026-02"), []);
    });
  });
}

export function accountConformance(open: () => Promise<Store>): void {
  describe("accounts", () => {
    test("a key stands for its tenant until it is revoked, and for nobody else's", async () => {
      const store = await open();
      const [test1, live] = (await addAccount(store, "acct_a", NOW)) as [string, string];
      const principal = await store.accounts.authenticate(test1);
      assert.deepEqual(principal?.tenant, { accountId: "acct_a", mode: "test" });
      assert.deepEqual((await store.accounts.authenticate(live))?.tenant.mode, "live");
      assert.equal(await store.accounts.authenticate("0".repeat(64)), null);
      assert.equal(await store.accounts.revokeKey(TENANT, principal.keyId), false);
      assert.ok(await store.accounts.authenticate(test1));
      assert.equal(await store.accounts.revokeKey(principal.tenant, principal.keyId), true);
      assert.equal(await store.accounts.authenticate(test1), null);
      assert.equal(await store.accounts.revokeKey(principal.tenant, principal.keyId), false);
    });

    test("keys are listed without what they are made of", async () => {
      const store = await open();
      const hash = "a".repeat(64);
      const key = {
        id: newId("key", NOW),
        ...TENANT,
        name: "ci",
        hint: "h",
        scopes: ["read"] as const,
        createdAt: NOW,
      };
      value(await store.accounts.createKey({ ...key, hash }, null));
      const page = await store.accounts.keys(TENANT, { limit: 1, cursor: null });
      assert.deepEqual(page.items, [key]);
      const rest = await store.accounts.keys(TENANT, { limit: 9, cursor: page.nextCursor });
      assert.equal(rest.items.length, 1);
      assert.doesNotMatch(JSON.stringify([page, rest]), /aaaa/);
    });

    test("rotated secrets both sign until the old one runs out", async () => {
      const store = await open();
      const [old] = await store.accounts.signingSecrets(TENANT, NOW);
      const fresh = {
        id: newId("sec", NOW + 1),
        secret: newSigningSecret(),
        createdAt: NOW + 1,
        expiresAt: null,
      };
      const both = value(await store.accounts.rotateSigningSecret(TENANT, fresh, NOW + 1_000, null));
      assert.deepEqual(
        both.map(({ secret }) => secret),
        [fresh.secret, old?.secret],
      );
      assert.equal((await store.accounts.signingSecrets(TENANT, NOW + 999)).length, 2);
      assert.deepEqual(await store.accounts.signingSecrets(TENANT, NOW + 1_000), [fresh]);
      assert.equal((await store.accounts.signingSecrets(LIVE, NOW)).length, 1);
    });

    test("a secret that has run out only by a clock ahead of its time signs again when the clock is right", async () => {
      const store = await open();
      const fresh = {
        id: newId("sec", NOW),
        secret: newSigningSecret(),
        createdAt: NOW,
        expiresAt: null,
      };
      await store.accounts.rotateSigningSecret(TENANT, fresh, NOW + 1_000, null);
      assert.equal((await store.accounts.signingSecrets(TENANT, NOW + 86_400_000)).length, 1);
      assert.equal((await store.accounts.signingSecrets(TENANT, NOW + 999)).length, 2);
    });

    test("list and get", async () => {
      const store = await open();
      const names = (await store.accounts.list()).map(({ id }) => id);
      assert.deepEqual(names.toSorted(), ["acct_other", TENANT.accountId]);
      assert.equal((await store.accounts.get("acct_other"))?.name, "acct_other");
      assert.equal(await store.accounts.get("acct_none"), null);
    });
  });
}
