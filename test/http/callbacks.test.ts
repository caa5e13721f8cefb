/** `callback_url`: told the end of a job, once, with attempts of its own, in nobody's way and in nobody's figures. */
import assert from "node:assert/strict";
import { after, before, describe, type TestContext, test } from "node:test";
import { Webhook } from "standardwebhooks";
import { startTestApp, type TestApp } from "../support/app.ts";
import { VirtualClock } from "../support/clock.ts";
import { gate, startTarget } from "../support/target.ts";

type Body = Record<string, any>;

let app: TestApp;
let clock: VirtualClock;
before(async () => {
  clock = new VirtualClock();
  app = await startTestApp({ clock, config: { originConcurrency: 2 } });
});
after(() => app.stop());

const read = async (id: string): Promise<Body> => (await app.call("GET", `/v1/jobs/${id}`)).body;

/** The job as soon as its callback stands so; what brings it there has begun already. */
async function told(id: string, isSo: (callback: Body) => boolean): Promise<Body> {
  for (;;) {
    const job = await read(id);
    if (job["callback"] !== null && isSo(job["callback"])) return job["callback"];
  }
}

async function pair(t: TestContext, status = 200) {
  const target = await startTarget(() => ({ status, body: `{"big":9007199254740993}` }));
  const listener = await startTarget(() => ({ status: 202 }));
  t.after(() => Promise.all([target.close(), listener.close()]));
  return { target, listener };
}

describe("a callback", () => {
  test("tells a completed job, signed, with the job as it ended", async (t) => {
    const { target, listener } = await pair(t);
    const created = await app.createJob({ url: target.url, payload: { a: 1 }, callback_url: listener.url });
    assert.deepEqual([created["callback_url"], created["callback"]], [listener.url, null]);
    const sent = await listener.request(1);
    const body = JSON.parse(sent.body);
    assert.deepEqual(
      [body.type, body.timestamp, body.data.id, body.data.status, body.data.attempts, body.data.actions],
      ["job.completed", body.data.finished_at, created["id"], "completed", 1, []],
    );
    assert.match(sent.body, /"response_body":\{"big":9007199254740993\}/);
    assert.equal(sent.method, "POST");
    assert.equal(sent.headers["content-type"], "application/json");
    assert.equal(sent.headers["errand-job-id"], created["id"]);
    const id = String(sent.headers["webhook-id"]);
    assert.match(id, /^cb_/);
    const { body: secrets } = await app.call<Body>("GET", "/v1/signing-secrets");
    const at = new Date(Number(sent.headers["webhook-timestamp"]) * 1_000);
    assert.equal(
      sent.headers["webhook-signature"],
      new Webhook(secrets["data"][0].secret).sign(id, at, sent.body),
    );
    assert.deepEqual(await told(created["id"], ({ status }) => status !== "pending"), {
      status: "delivered",
      attempts: 1,
      response_code: 202,
      last_error: null,
      next_retry_at: null,
    });
  });

  test("tells a failed job, and its other end after a retry under another id", async (t) => {
    const { target, listener } = await pair(t, 404);
    const fields = { url: target.url, max_attempts: 1, callback_url: listener.url };
    const { id } = await app.createJob(fields);
    const first = await listener.request(1);
    assert.equal(JSON.parse(first.body).type, "job.failed");
    assert.equal(JSON.parse(first.body).data.last_error, "The target answered 404.");
    await app.call("POST", `/v1/jobs/${id}/retry`);
    const second = await listener.request(2);
    assert.equal(JSON.parse(second.body).data.attempts, 2);
    assert.equal(JSON.parse(second.body).data.callback, null, "not what became of the first one");
    assert.notEqual(second.headers["webhook-id"], first.headers["webhook-id"]);
  });

  test("tells a cancelled job: by a person, one by one and in bulk, by a rejection, and by the system", async (t) => {
    const { target, listener } = await pair(t);
    const waiting = {
      url: target.url,
      callback_url: listener.url,
      requires_approval: true,
      approval_timeout: "10m",
      tags: ["told"],
    };
    const ids: string[] = [];
    for (let i = 0; i < 4; i++) ids.push((await app.createJob(waiting))["id"]);
    await app.call("POST", `/v1/jobs/${ids[0]}/cancel`);
    await app.call("POST", `/v1/jobs/${ids[1]}/reject`, { note: "no" });
    await listener.request(2);
    clock.jump(clock.now() + 600_000);
    await clock.advance("1s");
    await listener.request(4);
    const bodies = listener.received.map(({ body }) => JSON.parse(body));
    assert.deepEqual(
      new Set(bodies.map(({ type, data }) => `${type} ${data.id}`)),
      new Set(ids.map((id) => `job.cancelled ${id}`)),
    );
    const byId = (id: string | undefined) => bodies.find(({ data }) => data.id === id).data;
    assert.equal(byId(ids[0]).rejected_by, null);
    assert.equal(byId(ids[1]).approval_note, "no");
    assert.equal(byId(ids[2]).rejected_by, "system");
    const delayed = await app.createJob({ ...waiting, tags: ["bulk"] });
    const bulk = await app.call("POST", "/v1/jobs/cancel", { tag: "bulk" });
    assert.deepEqual(bulk.body, { count: 1 });
    assert.equal(JSON.parse((await listener.request(5)).body).data.id, delayed["id"]);
    assert.equal(target.received.length, 0);
  });

  test("tells the end of a pipeline, steps and all, and is not told by its steps", async (t) => {
    const { target, listener } = await pair(t);
    const { id } = await app.createJob({
      callback_url: listener.url,
      steps: [{ url: target.url }, { url: target.url }],
    });
    const { data } = JSON.parse((await listener.request(1)).body);
    assert.deepEqual(
      data.steps.map((step: Body) => [step["status"], step["attempts"]]),
      [
        ["completed", 1],
        ["completed", 1],
      ],
    );
    await told(id, ({ status }) => status === "delivered");
    assert.equal(listener.received.length, 1);
  });

  test("has five attempts on the usual backoff, the same bytes under the same id, and then has failed", async (t) => {
    const { target } = await pair(t);
    const dead = await startTarget(() => ({ status: 500 }));
    t.after(() => dead.close());
    const { id } = await app.createJob({ url: target.url, callback_url: dead.url, max_attempts: 1 });
    for (const [i, wait] of ["20s", "40s", "80s", "160s"].entries()) {
      const attempt = i + 1;
      const callback = await told(id, (one) => one["attempts"] === attempt && one["next_retry_at"] !== null);
      assert.deepEqual(
        [callback["status"], callback["response_code"], callback["last_error"]],
        ["pending", 500, "The target answered 500."],
      );
      const waitMs = Number.parseInt(wait, 10) * 1_000;
      assert.equal(callback["next_retry_at"], new Date(clock.now() + waitMs).toISOString());
      clock.jump(clock.now() + waitMs - 1_000);
      await clock.advance("1s");
      await dead.request(attempt + 1);
    }
    const callback = await told(id, ({ status }) => status !== "pending");
    assert.deepEqual(
      [callback["status"], callback["attempts"], callback["next_retry_at"]],
      ["failed", 5, null],
    );
    assert.equal((await read(id))["status"], "completed");
    clock.jump(clock.now() + 86_400_000);
    await clock.advance("1s");
    assert.equal(dead.received.length, 5);
    assert.equal(new Set(dead.received.map(({ body }) => body)).size, 1);
    assert.equal(new Set(dead.received.map(({ headers }) => headers["webhook-id"])).size, 1);
  });

  test("that is never answered holds nothing up: neither its job's queue nor other callbacks", async (t) => {
    const { target, listener } = await pair(t);
    const held = gate();
    const dead = await startTarget(async () => {
      await held.wait;
      return {};
    });
    t.after(async () => {
      held.open();
      await dead.close();
    });
    for (let i = 0; i < 6; i++) {
      const { id } = await app.createJob({ url: target.url, callback_url: dead.url });
      assert.equal((await app.ended(id))["status"], "completed");
    }
    await dead.request(2);
    const { id } = await app.createJob({ url: target.url, callback_url: listener.url });
    await told(id, ({ status }) => status === "delivered");
    // The limit of one origin: the others wait in its lane.
    assert.equal(dead.received.length, 2);
  });

  test("is in no list, no queue, no count and no figure of usage, and cannot be reached as a job", async (t) => {
    const quiet = await startTestApp();
    t.after(() => quiet.stop());
    const { target, listener } = await pair(t);
    const { id } = await quiet.createJob({
      callback_url: listener.url,
      steps: [{ url: target.url }, { url: target.url }],
    });
    const sent = await listener.request(1);
    let { body } = await quiet.call("GET", `/v1/jobs/${id}`);
    while (body["callback"].status !== "delivered") ({ body } = await quiet.call("GET", `/v1/jobs/${id}`));
    const list = await quiet.call("GET", "/v1/jobs");
    assert.deepEqual(
      list.body["data"].map((one: Body) => one["id"]),
      [id],
    );
    for (const path of [`/v1/jobs/${String(sent.headers["webhook-id"])}`]) {
      assert.equal((await quiet.call("GET", path)).status, 404);
      assert.equal((await quiet.call("POST", `${path}/retry`)).status, 404);
    }
    assert.equal((await quiet.call("GET", "/v1/jobs?queue=(callbacks)")).status, 422);
  });

  test("to an address that is forbidden is refused when the job is created", async () => {
    const answer = await app.call("POST", "/v1/jobs", {
      url: "http://127.0.0.1:9/",
      callback_url: "http://169.254.169.254/latest",
    });
    assert.deepEqual(
      [answer.status, answer.body["code"], answer.body["errors"][0].pointer],
      [422, "blocked_target", "/callback_url"],
    );
  });
});
