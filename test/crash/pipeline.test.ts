/** Pipelines and callbacks of a real process that is killed at each boundary: nothing is lost, and only what was in flight repeats. */
import assert from "node:assert/strict";
import { describe, type TestContext, test } from "node:test";
import { startProcess, type TestProcess } from "../support/process.ts";
import { gate, type Received, startTarget } from "../support/target.ts";

type Body = Record<string, any>;
/** When the process is killed: with a request open, or as soon as it was answered and its outcome may not be stored. */
const MOMENTS = ["while the target holds its answer", "as soon as the target has answered"] as const;

/** Processes one after the other on the same folder. */
function service(t: TestContext, env: Record<string, string> = {}) {
  let running: TestProcess | null = null;
  let folder: string | undefined;
  t.after(() => running?.cleanUp());
  return {
    async start(): Promise<TestProcess> {
      running = await startProcess({ env, ...(folder === undefined ? {} : { folder }) });
      folder = running.folder;
      return running;
    },
    kill: () => running!.kill(),
  };
}

const ended = async (app: TestProcess, id: string): Promise<Body> =>
  (await app.call("GET", `/v1/jobs/${id}?wait=30s`)).body;

async function reached(app: TestProcess, id: string, isSo: (job: Body) => boolean): Promise<Body> {
  for (;;) {
    const { body } = await app.call<Body>("GET", `/v1/jobs/${id}`);
    if (isSo(body)) return body;
  }
}

async function create(app: TestProcess, fields: Body): Promise<string> {
  const { status, body, text } = await app.call<Body>("POST", "/v1/jobs", fields);
  assert.equal(status, 201, text);
  return body["id"];
}

/** A target of several paths; the first request to `killAt` is the end of the process, once the create was acknowledged. */
async function deadlyTarget(
  t: TestContext,
  killAt: string,
  moment: (typeof MOMENTS)[number],
  kill: () => Promise<void>,
) {
  const dead = gate();
  const held = gate();
  const created = gate();
  let killed = false;
  const target = await startTarget(async ({ path }, count) => {
    const answer = { body: `{"from":"${path}","count":${count}}` };
    if (path !== killAt || killed) return answer;
    killed = true;
    // A delivery can begin before its create is answered.
    await created.wait;
    if (moment === MOMENTS[0]) {
      void kill().then(dead.open);
      return { ...answer, wait: held.wait };
    }
    // After the answer is on its way.
    setImmediate(() => void kill().then(dead.open));
    return answer;
  });
  t.after(async () => {
    held.open();
    await target.close();
  });
  const url = (path: string) => new URL(path, target.url).href;
  return { target, url, created: created.open, dead: dead.wait };
}

const byPath = (received: readonly Received[], path: string) => received.filter((one) => one.path === path);

describe("a pipeline whose process is killed", () => {
  for (const moment of MOMENTS) {
    for (const [position, killAt] of ["/a", "/b", "/c"].entries()) {
      test(`in step ${position + 1} ${moment} goes on there`, async (t) => {
        const processes = service(t);
        const { target, url, created, dead } = await deadlyTarget(t, killAt, moment, processes.kill);
        const first = await processes.start();
        const id = await create(first, {
          payload: { n: 1 },
          max_attempts: 1,
          steps: [
            { name: "a", url: url("/a") },
            { name: "b", url: url("/b") },
            { name: "c", url: url("/c"), payload: [{ $from: "a#/from" }, { $from: "b#/from" }] },
          ],
        });
        created();
        await dead;
        const second = await processes.start();
        const job = await ended(second, id);
        assert.equal(job["status"], "completed", job["last_error"]);
        assert.deepEqual(
          job["steps"].map((step: Body) => step["status"]),
          ["completed", "completed", "completed"],
        );
        for (const [i, path] of ["/a", "/b", "/c"].entries()) {
          const received = byPath(target.received, path);
          // After the answer either this step or the next one was in flight.
          const inFlight = i === position || (moment === MOMENTS[1] && i === position + 1);
          const most = inFlight ? 2 : 1;
          assert.ok(received.length >= 1 && received.length <= most, `${path} came ${received.length} times`);
          if (path === killAt && moment === MOMENTS[0]) assert.equal(received.length, 2);
          for (const one of received) assert.equal(one.headers["webhook-id"], `${id}-${i + 1}`);
          assert.equal(new Set(received.map(({ body }) => body)).size, 1);
          // What was interrupted stays in the ledger, also when it died before the target saw it, and did not use up
          // the one attempt of the budget.
          const { attempts } = job["steps"][i];
          assert.ok(attempts >= received.length && attempts <= most, `${path} has ${attempts} attempts`);
        }
        assert.ok(target.received.length <= 4, "only what was in flight repeats");
        assert.equal(byPath(target.received, "/c")[0]?.body, `["/a","/b"]`);
      });
    }
  }

  test("between two steps sends the next one, and not the one before again", async (t) => {
    const processes = service(t);
    const target = await startTarget(() => ({ body: "{}" }));
    t.after(() => target.close());
    const first = await processes.start();
    const id = await create(first, { steps: [{ url: target.url }, { url: target.url, delay: "2s" }] });
    const between = await reached(first, id, (job) => job["steps"][0].status === "completed");
    assert.equal(between["status"], "pending");
    await first.kill();
    const second = await processes.start();
    assert.equal((await ended(second, id))["status"], "completed");
    assert.deepEqual(
      target.received.map(({ headers }) => headers["webhook-id"]),
      [`${id}-1`, `${id}-2`],
    );
  });

  test("while it waits for approval waits on; killed after the approval, it goes on", async (t) => {
    const processes = service(t);
    const target = await startTarget((_, count) => ({ body: `{"n":${count}}` }));
    t.after(() => target.close());
    const first = await processes.start();
    const id = await create(first, {
      steps: [{ url: target.url }, { url: target.url, requires_approval: true, delay: "2s" }],
    });
    await reached(first, id, (job) => job["status"] === "awaiting_approval");
    await first.kill();

    const second = await processes.start();
    const held = (await second.call<Body>("GET", `/v1/jobs/${id}`)).body;
    assert.equal(held["status"], "awaiting_approval");
    assert.deepEqual(held["steps"][0].response_body, { n: 1 });
    assert.equal((await second.call("POST", `/v1/jobs/${id}/approve`)).status, 200);
    await second.kill();

    const third = await processes.start();
    assert.equal((await ended(third, id))["status"], "completed");
    assert.deepEqual(
      target.received.map(({ body }) => body),
      ["", `{"n":1}`],
    );
  });

  test("three times in one job fails it, in the step where it stood, and its callback is told", async (t) => {
    const processes = service(t);
    const never = gate();
    const target = await startTarget(({ path }) =>
      path === "/b" ? { wait: never.wait } : { body: `{"from":"${path}"}` },
    );
    t.after(async () => {
      never.open();
      await target.close();
    });
    const url = (path: string) => new URL(path, target.url).href;
    const first = await processes.start();
    const id = await create(first, {
      callback_url: url("/callback"),
      steps: [{ url: url("/a") }, { url: url("/b") }],
    });
    for (let i = 0; i < 3; i++) {
      await target.request(2 + i);
      await processes.kill();
      await processes.start();
    }
    const told = await target.request(5);
    assert.equal(told.path, "/callback");
    const { type, data } = JSON.parse(told.body);
    assert.deepEqual(
      [type, data.id, data.last_error_code, data.attempts],
      ["job.failed", id, "interrupted", 3],
    );
    assert.deepEqual(
      data.steps.map((step: Body) => step["status"]),
      ["completed", "failed"],
    );
  });
});

describe("a callback whose process is killed", () => {
  test("between the end of the job and the callback is told all the same", async (t) => {
    const processes = service(t, { ERRAND_CONCURRENCY: "1" });
    const never = gate();
    const target = await startTarget(({ path }) => (path === "/busy" ? { wait: never.wait } : {}));
    t.after(async () => {
      never.open();
      await target.close();
    });
    const url = (path: string) => new URL(path, target.url).href;
    const first = await processes.start();
    const id = await create(first, { url: url("/x"), callback_url: url("/callback"), delay: "1h" });
    // The one place for attempts is taken, so that the callback cannot leave before the kill.
    const busy = await create(first, { url: url("/busy") });
    await target.request(1);
    const cancelled = await first.call<Body>("POST", `/v1/jobs/${id}/cancel`);
    assert.equal(cancelled.status, 200, cancelled.text);
    assert.equal(cancelled.body["callback"].status, "pending");
    await first.kill();
    never.open();

    const second = await processes.start();
    await ended(second, busy);
    const job = await reached(second, id, ({ callback }) => callback.status !== "pending");
    assert.deepEqual([job["callback"].status, job["callback"].attempts], ["delivered", 1]);
    assert.equal(JSON.parse(byPath(target.received, "/callback")[0]!.body).type, "job.cancelled");
  });

  for (const moment of MOMENTS) {
    test(`${moment} is told again, the same bytes under the same id`, async (t) => {
      const processes = service(t);
      const { target, url, created, dead } = await deadlyTarget(t, "/callback", moment, processes.kill);
      const first = await processes.start();
      const id = await create(first, { url: url("/a"), callback_url: url("/callback") });
      created();
      await dead;
      const second = await processes.start();
      const job = await reached(second, id, ({ callback }) => callback.status !== "pending");
      assert.deepEqual([job["status"], job["callback"].status], ["completed", "delivered"]);
      assert.equal(byPath(target.received, "/a").length, 1);
      const told = byPath(target.received, "/callback");
      assert.equal(told.length, job["callback"].attempts);
      assert.ok(told.length >= 1 && told.length <= 2);
      assert.equal(
        new Set(told.map(({ headers, body }) => `${String(headers["webhook-id"])} ${body}`)).size,
        1,
      );
    });
  }

  test("when the last answer comes and the end may not be stored: told exactly one end", async (t) => {
    const processes = service(t);
    const { target, url, created, dead } = await deadlyTarget(t, "/a", MOMENTS[1], processes.kill);
    const first = await processes.start();
    const id = await create(first, { url: url("/a"), callback_url: url("/callback"), max_attempts: 1 });
    created();
    await dead;
    const second = await processes.start();
    const job = await reached(second, id, ({ callback }) => callback?.status === "delivered");
    assert.equal(job["status"], "completed");
    const ids = byPath(target.received, "/callback").map(({ headers }) => headers["webhook-id"]);
    assert.equal(new Set(ids).size, 1);
  });
});
