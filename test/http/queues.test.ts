/** Queues: limits that hold exactly and across a restart, pause, counts, and the age of the oldest due job. */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { type Answer, startTestApp, type TestApp } from "../support/app.ts";
import { settle, VirtualClock } from "../support/clock.ts";
import { gate, startTarget } from "../support/target.ts";

const queueOf = async (app: TestApp, name: string) => (await app.call("GET", `/v1/queues/${name}`)).body;

function batch(app: TestApp, count: number, fields: object) {
  return app.call("POST", "/v1/jobs/batch", { jobs: Array.from({ length: count }, () => fields) });
}

describe("queues", () => {
  let app: TestApp;
  before(async () => {
    app = await startTestApp();
  });
  after(() => app.stop());

  test("a concurrency limit is exact: reached, never passed, over several targets", async () => {
    let active = 0;
    let peak = 0;
    const turns: (() => void)[] = [];
    const answer = async () => {
      active += 1;
      peak = Math.max(peak, active);
      await new Promise<void>((resolve) => turns.push(resolve));
      active -= 1;
      return {};
    };
    const targets = [await startTarget(answer), await startTarget(answer), await startTarget(answer)];
    await app.call("PUT", "/v1/queues/narrow", { concurrency: 3 });
    const jobs = Array.from({ length: 30 }, (_, i) => ({ url: targets[i % 3]!.url, queue: "narrow" }));
    const { body } = await app.call("POST", "/v1/jobs/batch", { jobs });
    const ends = Promise.all(body["data"].map(({ id }: { id: string }) => app.ended(id)));
    for (let answered = 0; answered < 30; ) {
      // Whenever the limit is reached, one answer goes out; near the end there is less to run.
      if (active === Math.min(3, 30 - answered)) {
        turns.shift()!();
        answered += 1;
      }
      await settle(1);
    }
    const ended = await ends;
    assert.ok(ended.every((job) => job["status"] === "completed"));
    assert.equal(peak, 3);
    for (const target of targets) await target.close();
  });

  test("a limit that is lowered or raised while attempts are under way holds from the next one on", async () => {
    const { wait, open } = gate();
    const target = await startTarget(() => ({ wait }));
    await app.call("PUT", "/v1/queues/moving", { concurrency: 2 });
    await batch(app, 10, { url: target.url, queue: "moving" });
    await target.request(2);
    await app.call("PUT", "/v1/queues/moving", { concurrency: 5 });
    await target.request(5);
    await app.call("PUT", "/v1/queues/moving", { concurrency: 1 });
    assert.deepEqual((await queueOf(app, "moving"))["counts"].active, 5);
    await app.call("PUT", "/v1/queues/moving", { concurrency: null });
    await target.request(10);
    assert.equal(target.peak, 10);
    open();
    await target.close();
  });

  test("a paused queue accepts and holds, after a restart too; other queues go on", async () => {
    const target = await startTarget();
    assert.equal((await app.call("POST", "/v1/queues/default/pause")).body["paused"], true);
    const { id } = await app.createJob({ url: target.url });
    await app.call("PUT", "/v1/queues/free", {});
    await app.ended((await app.createJob({ url: target.url, queue: "free" }))["id"]);
    await app.stop({ keep: true });
    app = await startTestApp({ folder: app.folder });
    await app.ended((await app.createJob({ url: target.url, queue: "free" }))["id"]);
    assert.equal((await app.call("GET", `/v1/jobs/${id}`)).body["status"], "pending");
    assert.equal(target.received.length, 2);
    assert.equal((await app.call("POST", "/v1/queues/default/resume")).body["paused"], false);
    assert.equal((await app.ended(id))["status"], "completed");
    await target.close();
  });

  test("settings: left out stays, null takes away, and a queue is there once something was put into it", async () => {
    assert.equal((await app.call("GET", "/v1/queues/later")).status, 404);
    assert.equal((await app.call("POST", "/v1/queues/later/pause")).status, 404);
    await app.createJob({ url: "http://127.0.0.1:9/", queue: "later", delay: "1h" });
    assert.equal((await app.call("GET", "/v1/queues/later")).status, 200);
    const rate = { limit: 5, period: "1m" };
    const put = async (fields: object) => (await app.call("PUT", "/v1/queues/later", fields)).body;
    assert.deepEqual((await put({ concurrency: 4, rate_limit: rate }))["rate_limit"], rate);
    const kept = await put({});
    assert.deepEqual([kept["concurrency"], kept["rate_limit"]], [4, rate]);
    await app.call("POST", "/v1/queues/later/pause");
    const cleared = await put({ concurrency: null });
    assert.deepEqual([cleared["concurrency"], cleared["rate_limit"], cleared["paused"]], [null, rate, true]);
  });

  test("the list has pages, and never the queue of callbacks", async () => {
    const target = await startTarget();
    await app.ended((await app.createJob({ url: target.url, callback_url: target.url }))["id"]);
    await target.request(2);
    for (let i = 0; i < 5; i++) await app.call("PUT", `/v1/queues/page-${i}`, {});
    const names: string[] = [];
    for (let cursor: string | null = ""; cursor !== null; ) {
      const { body }: Answer<any> = await app.call(
        "GET",
        `/v1/queues?limit=2${cursor === "" ? "" : `&cursor=${cursor}`}`,
      );
      names.push(...body["data"].map(({ name }: { name: string }) => name));
      cursor = body["next_cursor"];
    }
    assert.deepEqual(names.slice(0, 5), ["page-4", "page-3", "page-2", "page-1", "page-0"]);
    assert.equal(names.at(-1), "default");
    assert.equal(new Set(names).size, names.length);
    assert.ok(names.every((name) => !name.startsWith("(")));
    await target.close();
  });
});

describe("queues in time", () => {
  test("counts follow every transition, and the oldest due age tells how long", async () => {
    const clock = new VirtualClock();
    const app = await startTestApp({ clock });
    const { wait, open } = gate();
    const target = await startTarget((_, n) => (n === 1 ? { wait } : { status: n === 2 ? 404 : 200 }));
    const counts = async () => {
      const {
        pending,
        active,
        completed,
        failed,
        cancelled,
        awaiting_approval: waiting,
      } = (await queueOf(app, "default"))["counts"];
      return [pending, active, completed, failed, cancelled, waiting];
    };
    const url = target.url;
    assert.deepEqual(await counts(), [0, 0, 0, 0, 0, 0]);
    const held = await app.createJob({ url });
    await target.request(1);
    assert.deepEqual(await counts(), [0, 1, 0, 0, 0, 0]);
    const delayed = await app.createJob({ url, delay: "1h" });
    const asking = await app.createJob({ url, requires_approval: true });
    assert.deepEqual(await counts(), [1, 1, 0, 0, 0, 1]);
    assert.equal((await queueOf(app, "default"))["oldest_due_age_ms"], null);
    const failing = await app.createJob({ url, no_retry_on: ["4xx"] });
    await app.ended(failing["id"]);
    await app.call("POST", `/v1/jobs/${delayed["id"]}/cancel`);
    await app.call("POST", `/v1/jobs/${asking["id"]}/reject`);
    assert.deepEqual(await counts(), [0, 1, 0, 1, 2, 0]);
    open();
    await app.ended(held["id"]);
    assert.deepEqual(await counts(), [0, 0, 1, 1, 2, 0]);

    await app.call("POST", "/v1/queues/default/pause");
    await app.createJob({ url, delay: "1m" });
    await app.createJob({ url, delay: "2m" });
    await clock.leap("90s");
    assert.equal((await queueOf(app, "default"))["oldest_due_age_ms"], 30_000);
    await clock.leap("90s");
    assert.equal((await queueOf(app, "default"))["oldest_due_age_ms"], 120_000);
    assert.deepEqual(await counts(), [2, 0, 1, 1, 2, 0]);
    await app.stop();
    await target.close();
  });

  test("a rate limit is exact in every window, over several targets and across a restart", async () => {
    const clock = new VirtualClock();
    let app = await startTestApp({ clock });
    const at: number[] = [];
    const note = () => {
      at.push(clock.now());
      return {};
    };
    const targets = [await startTarget(note), await startTarget(note)];
    await app.call("PUT", "/v1/queues/slow", { rate_limit: { limit: 5, period: "10s" } });
    const start = clock.now();
    for (const { url } of targets) await batch(app, 11, { url, queue: "slow" });
    const begun = async (n: number) => {
      while ((await queueOf(app, "slow"))["counts"].completed < n) await settle();
      return at.length;
    };
    assert.equal(await begun(5), 5);
    await clock.advance(9_999);
    // A new job makes the dispatcher look again, a millisecond too early.
    await batch(app, 1, { url: targets[0]!.url, queue: "slow" });
    assert.equal((await queueOf(app, "slow"))["counts"].pending, 18);
    assert.equal(at.length, 5);
    await clock.advance(1);
    assert.equal(await begun(10), 10);
    await clock.advance(5_000);
    await app.stop({ keep: true });
    app = await startTestApp({ clock, folder: app.folder });
    await clock.advance(4_999);
    assert.equal(at.length, 10);
    await clock.advance(1);
    assert.equal(await begun(15), 15);
    await clock.advance(10_000);
    assert.equal(await begun(20), 20);
    await clock.advance(10_000);
    assert.equal(await begun(23), 23);
    assert.deepEqual(
      [0, 5, 10, 15, 20].map((i) => at[i]! - start),
      [0, 10_000, 20_000, 30_000, 40_000],
    );
    await app.stop();
    for (const target of targets) await target.close();
  });

  test("a deep backlog for one target leaves its share of the rate limit to another", async () => {
    const clock = new VirtualClock();
    const app = await startTestApp({ clock });
    const [busy, quiet] = [await startTarget(), await startTarget()];
    await app.call("PUT", "/v1/queues/shared", { rate_limit: { limit: 2, period: "10s" } });
    await batch(app, 20, { url: busy.url, queue: "shared" });
    await busy.request(2);
    await batch(app, 2, { url: quiet.url, queue: "shared" });
    await clock.advance("10s");
    await quiet.request(2);
    assert.equal(busy.received.length, 2);
    await clock.advance("10s");
    await busy.request(4);
    await app.stop();
    await busy.close();
    await quiet.close();
  });

  test("a job that comes due while places are free is not held by the rate limit", async () => {
    const clock = new VirtualClock();
    const app = await startTestApp({ clock });
    const target = await startTarget();
    await app.call("PUT", "/v1/queues/loose", { rate_limit: { limit: 5, period: "1h" } });
    await app.ended((await app.createJob({ url: target.url, queue: "loose" }))["id"]);
    const first = await app.createJob({ url: target.url, queue: "loose", delay: "10s" });
    await app.ended((await app.createJob({ url: target.url, queue: "loose" }))["id"]);
    await clock.advance("10s");
    assert.equal((await app.ended(first["id"]))["status"], "completed");
    await app.stop();
    await target.close();
  });

  test("a rate limit that is raised or taken away lets go at once", async () => {
    const clock = new VirtualClock();
    const app = await startTestApp({ clock });
    const target = await startTarget();
    await app.call("PUT", "/v1/queues/tight", { rate_limit: { limit: 1, period: "1d" } });
    const { body } = await batch(app, 4, { url: target.url, queue: "tight" });
    await target.request(1);
    await clock.advance(5);
    assert.equal(target.received.length, 1);
    await app.call("PUT", "/v1/queues/tight", { rate_limit: { limit: 2, period: "1d" } });
    await target.request(2);
    await clock.advance(5);
    assert.equal(target.received.length, 2);
    await app.call("PUT", "/v1/queues/tight", { rate_limit: null });
    await target.request(4);
    for (const { id } of body["data"]) assert.equal((await app.ended(id))["status"], "completed");
    await app.stop();
    await target.close();
  });
});
