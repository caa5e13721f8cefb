/** The dispatcher on a real store, with a virtual clock and scripted outcomes. */
import assert from "node:assert/strict";
import { describe, type TestContext, test } from "node:test";
import pino from "pino";
import { RawJson } from "../../src/base/json.ts";
import type { HttpRequest } from "../../src/delivery/request.ts";
import { Engine } from "../../src/engine/engine.ts";
import type { LaneLimits } from "../../src/engine/shares.ts";
import { cancel } from "../../src/jobs/lifecycle.ts";
import { openStore } from "../../src/store/sqlite/open.ts";
import { claimAll } from "../store/conformance-engine.ts";
import { enqueue } from "../store/conformance-jobs.ts";
import { settle, VirtualClock } from "../support/clock.ts";
import { ioError, takeDisk } from "../support/disk.ts";
import { newJob, newPipeline, newStep, response, TENANT } from "../support/factories.ts";
import { ScriptedSender } from "../support/sender.ts";
import { BOX, openTestStore } from "../support/store.ts";

const WIDE: LaneLimits = { total: 512, perOrigin: 64 };

async function world(t: TestContext, { sender = new ScriptedSender(), limits = WIDE, start = true } = {}) {
  const clock = new VirtualClock();
  const opened = await openTestStore({ clock });
  const { store, folder } = opened;
  const log = pino({ level: "silent" });
  const engine = new Engine({ store, sender, clock, limits, version: "0", log, retentionMs: 1e12 });
  t.after(async () => {
    const stopping = engine.stop(0);
    // Its timer is set only after other things have come to an end.
    for (let i = 0; i < 20; i++) await clock.advance(10);
    await stopping;
    await opened.close();
  });
  if (start) await engine.start();
  await settle();
  const job = async (id: string) => (await store.jobs.get(TENANT, id))!;
  return { clock, store, folder, engine, sender, job, now: () => clock.now() };
}

function headerOf({ headers }: HttpRequest, name: string): string | undefined {
  const i = headers.findIndex((text, position) => position % 2 === 0 && text.toLowerCase() === name);
  return i < 0 ? undefined : headers[i + 1];
}

const ALL = { limit: 100, cursor: null };

const at = (n: number) => `http://127.0.0.${n}:9/`;

test("of jobs with large bodies each origin gets its first at once, and the claims after one that fails come again", async (t) => {
  const { clock, store, sender, engine, now } = await world(t, { start: false });
  const sound = { ...store.engine };
  let claims = 0;
  Object.assign(store.engine, {
    claimDue: (...given: Parameters<typeof sound.claimDue>) => {
      claims += 1;
      return claims === 2 ? Promise.reject(new Error("the disk is full")) : sound.claimDue(...given);
    },
  });
  const payload = new RawJson(JSON.stringify("x".repeat(1_000_000)));
  const origins = Array.from({ length: 30 }, (_, i) => at(i + 1));
  for (const url of origins)
    await enqueue(store, newJob(now(), { payload, target: { url, method: "POST", headers: {} } }));
  await engine.start();
  while (sender.sent.length < 9) await settle();
  await settle();
  // Nine megabytes are more than a claim takes.
  assert.equal(sender.sent.length, 9);
  await clock.advance("1s");
  // The log is copied into the file meanwhile, in real time.
  while (sender.sent.length < origins.length) await settle();
  assert.equal(claims, 5);
});

describe("retries", () => {
  test("come after 20 s and 40 s, each counted, and the last failure ends the job", async (t) => {
    const { clock, store, sender, job, now } = await world(t, {
      sender: new ScriptedSender(() => response(500)),
    });
    const [{ id }] = (await enqueue(store, newJob(now()))) as any;
    await settle();
    const seen = [sender.sent.length];
    for (const wait of [19_999, 1, 39_999, 1, 3_600_000]) {
      await clock.advance(wait);
      seen.push(sender.sent.length);
    }
    assert.deepEqual(seen, [1, 1, 2, 2, 3, 3]);
    assert.equal((await job(id)).status, "failed");
    const numbers = sender.sent.map(({ request }) => headerOf(request, "errand-attempt"));
    assert.deepEqual(numbers, ["1", "2", "3"]);
    assert.equal((await store.jobs.attempts(TENANT, id, ALL))?.items.length, 3);
  });

  test("Retry-After lengthens the wait", async (t) => {
    const answers = [response(429, { "retry-after": "120" }), response(200)];
    const { clock, store, sender, job, now } = await world(t, {
      sender: new ScriptedSender(() => answers.shift()!),
    });
    const [{ id }] = (await enqueue(store, newJob(now()))) as any;
    await clock.advance("119s");
    assert.equal(sender.sent.length, 1);
    await clock.advance("1s");
    assert.equal((await job(id)).status, "completed");
  });

  test("a sender that throws is a failure as any other", async (t) => {
    const { clock, store, sender, job, now } = await world(t, {
      sender: new ScriptedSender(() => {
        throw new Error("a defect");
      }),
    });
    const [{ id }] = (await enqueue(store, newJob(now()))) as any;
    await settle();
    assert.deepEqual(
      [(await job(id)).status, (await job(id)).lastErrorCode],
      ["pending", "invalid_response"],
    );
    await clock.advance("20s");
    assert.equal(sender.sent.length, 2);
  });
});

describe("due times", () => {
  test("a job far ahead is sent when its time has come, and not before", async (t) => {
    const { clock, store, sender, now } = await world(t);
    const runAt = now() + 2 ** 31 + 60_000;
    await store.jobs.enqueue(TENANT, [newJob(now(), { runAt })], now(), null);
    await clock.advance("1m");
    assert.equal(sender.sent.length, 0);
    clock.jump(runAt - 1_500);
    await clock.advance("1s");
    assert.equal(sender.sent.length, 0);
    await clock.advance("1s");
    assert.equal(sender.sent.length, 1);
  });

  test("an earlier job in the same lane shortens the sleep, and a cancelled one is not sent", async (t) => {
    const { clock, store, sender, now } = await world(t);
    const [{ id }] = (await enqueue(store, newJob(now(), { runAt: now() + 60_000 }))) as any;
    await store.jobs.enqueue(TENANT, [newJob(now(), { runAt: now() + 10_000 })], now(), null);
    await store.jobs.change(TENANT, id, (job) => cancel(job, now()));
    await clock.advance("10s");
    assert.equal(sender.sent.length, 1);
    await clock.advance("5m");
    assert.equal(sender.sent.length, 1);
  });
});

describe("limits", () => {
  test("per origin and over all, and every job is sent in the end", async (t) => {
    const limits = { total: 10, perOrigin: 4 };
    const { store, sender, now } = await world(t, { limits });
    for (const n of [1, 2, 3, 4])
      await enqueue(store, ...Array.from({ length: 15 }, () => newJob(now(), { url: at(n) })));
    for (let i = 0; sender.sent.length < 60 || sender.open.size > 0; i++) {
      assert.ok(i < 200, "nothing is forgotten");
      await settle(4);
      for (const one of sender.open) {
        one.answer(response(200));
        break;
      }
    }
    assert.ok(sender.peak > 5 && sender.peak <= 10, `at most ${sender.peak} at once`);
    for (const peak of sender.peaks.values()) assert.ok(peak <= 4);
  });

  test("1,000 due jobs of an origin that hangs do not delay another's", async (t) => {
    const hangs = new ScriptedSender((request) =>
      request.url.host === "127.0.0.1:9" ? null : response(200),
    );
    const { clock, store, sender, job, now } = await world(t, { sender: hangs });
    await enqueue(store, ...Array.from({ length: 1_000 }, () => newJob(now(), { url: at(1) })));
    await clock.advance("1s");
    await settle();
    assert.equal(sender.open.size, 64);
    const [{ id }] = (await enqueue(store, newJob(now(), { url: at(2) }))) as any;
    await settle();
    assert.equal((await job(id)).status, "completed");
    assert.equal(sender.peaks.get("http://127.0.0.1:9"), 64);
  });

  test("a queue's concurrency and pause hold, and what waits goes on when they are lifted", async (t) => {
    const { store, sender, now } = await world(t);
    await store.queues.configure(TENANT, "default", { concurrency: 2 }, now());
    await enqueue(store, ...[1, 2, 3, 4, 5].map((n) => newJob(now(), { url: at(n) })));
    await settle();
    assert.equal(sender.open.size, 2);
    await store.queues.configure(TENANT, "default", { paused: true }, now());
    for (const one of sender.open) one.answer(response(200));
    await settle();
    assert.deepEqual([sender.open.size, sender.sent.length], [0, 2]);
    await store.queues.configure(TENANT, "default", { paused: false, concurrency: null }, now());
    await settle();
    assert.equal(sender.sent.length, 5);
  });

  test("limits that were set before the start hold from the start", async (t) => {
    const { store, sender, engine, now } = await world(t, { start: false });
    await store.queues.configure(TENANT, "default", { concurrency: 1 }, now());
    await enqueue(store, newJob(now()), newJob(now()));
    await engine.start();
    await settle();
    assert.equal(sender.open.size, 1);
  });

  test("a rate limit lets the rest through in the next period", async (t) => {
    const { clock, store, sender, now } = await world(t, { sender: new ScriptedSender(() => response(200)) });
    await store.queues.configure(TENANT, "default", { rateLimit: { limit: 2, period: "10s" } }, now());
    await enqueue(store, ...Array.from({ length: 5 }, () => newJob(now())));
    await settle();
    const seen = [sender.sent.length];
    for (const wait of ["9s", "1s", "10s"]) {
      await clock.advance(wait);
      seen.push(sender.sent.length);
    }
    assert.deepEqual(seen, [2, 2, 4, 5]);
  });
});

describe("a pipeline", () => {
  test("runs its steps in order, each fed by the one before", async (t) => {
    const { clock, store, sender, job, now } = await world(t, {
      sender: new ScriptedSender((request) =>
        response(200, { "content-type": "text/plain" }, `from ${request.url.pathname}`),
      ),
    });
    const steps = [newStep("a"), newStep("b", { delay: "5s" }), newStep("c")];
    const [{ id }] = (await enqueue(store, newPipeline(now(), steps))) as any;
    await clock.advance("5s");
    assert.equal((await job(id)).status, "completed");
    const bodies = sender.sent.map(({ request }) => Buffer.from(request.body ?? "").toString());
    assert.deepEqual(bodies, [`{"n":1.0}`, "from /a", "from /b"]);
    const ids = sender.sent.map(({ request }) => headerOf(request, "webhook-id"));
    assert.deepEqual(ids, [`${id}-1`, `${id}-2`, `${id}-3`]);
  });
});

describe("a stop", () => {
  test("waits for what is under way, begins nothing new, and puts back what took too long", async (t) => {
    const { store, sender, engine, job, clock, now } = await world(t);
    const jobs = await enqueue(store, newJob(now()), newJob(now()));
    await settle();
    const stopped = engine.stop(30_000);
    await settle();
    const late = await enqueue(store, newJob(now()));
    [...sender.open][0]!.answer(response(200));
    await clock.advance("30s");
    await stopped;
    const states = await Promise.all([...jobs, ...late].map(async ({ id }) => (await job(id)).status));
    assert.deepEqual(states.toSorted(), ["completed", "pending", "pending"]);
    const released = (await Promise.all(jobs.map(({ id }) => job(id)))).find(
      (one) => one.status === "pending",
    )!;
    assert.deepEqual([released.attempts, released.spent, released.deaths], [1, 0, 0]);
    assert.ok(released.dueAt! <= clock.now());
    assert.equal(sender.sent.length, 2);
  });
});

describe("a start", () => {
  test("sends again what the last process left active", async (t) => {
    const { store, sender, engine, job, now } = await world(t, {
      start: false,
      sender: new ScriptedSender(() => response(200)),
    });
    const [{ id }] = (await enqueue(store, newJob(now()))) as any;
    assert.equal((await claimAll(store, now())).length, 1);
    await engine.start();
    await settle();
    const ended = await job(id);
    assert.deepEqual([ended.status, ended.attempts, ended.spent, ended.deaths], ["completed", 2, 1, 1]);
    assert.equal(headerOf(sender.sent[0]!.request, "errand-attempt"), "2");
    const decisions = (await store.jobs.attempts(TENANT, id, ALL))?.items.map(({ errorCode }) => errorCode);
    assert.deepEqual(decisions, ["interrupted", null]);
  });

  test("held by a restore, sends nothing until another process lets go", async (t) => {
    const { clock, store, sender, engine, folder, now } = await world(t, { start: false });
    const [begun] = await enqueue(store, newJob(now()));
    await claimAll(store, now(), 1);
    await store.maintenance.hold(true);
    await enqueue(store, newJob(now()));
    await engine.start();
    await clock.advance("1m");
    assert.equal(sender.sent.length, 0);
    // What was under way in the backup can be cancelled before it is sent again.
    await store.jobs.change(TENANT, begun!.id, (job) => cancel(job, now()));
    const beside = openStore({ folder, box: BOX, clock, exclusive: false });
    await beside.maintenance.hold(false);
    await beside.close();
    await clock.advance("2s");
    // Its start waits for a sync, which takes real time.
    for (let i = 0; i < 1_000 && sender.sent.length === 0; i++) await settle();
    assert.equal(sender.sent.length, 1);
  });
});

describe("a store that fails", () => {
  test("keeps outcomes waiting and nothing new is begun; work goes on within 10 s of its recovery", async (t) => {
    const disk = takeDisk();
    t.after(() => disk.restore());
    const { clock, store, sender, job, now } = await world(t);
    const [first, second] = await enqueue(
      store,
      newJob(now()),
      newJob(now(), { runAt: now() + 5_000, url: at(2) }),
    );
    await settle();
    disk.failWith = ioError();
    await assert.rejects(store.maintenance.hold(false));
    sender.sent[0]?.answer(response(200));
    await clock.advance("30s");
    assert.equal(sender.sent.length, 1, "nothing is sent while claims cannot be kept");
    assert.equal((await job(first!.id)).status, "active");

    disk.failWith = null;
    for (let i = 0; i < 1_000 && store.trouble() !== null; i++) {
      await clock.advance(10);
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
    assert.equal(store.trouble(), null);
    await clock.advance("10s");
    assert.equal((await job(first!.id)).status, "completed");
    assert.ok(sender.sent.some(({ request }) => headerOf(request, "errand-job-id") === second!.id));
  });
});
