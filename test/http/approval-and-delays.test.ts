/** Jobs and steps that wait for a person, and delays, by a clock that the test moves. */
import assert from "node:assert/strict";
import { after, before, describe, type TestContext, test } from "node:test";
import { durationMs } from "../../src/base/duration.ts";
import { startTestApp, type TestApp } from "../support/app.ts";
import { VirtualClock } from "../support/clock.ts";
import { startTarget } from "../support/target.ts";

const START = Date.parse("2026-01-05T00:00:00.000Z");

let app: TestApp;
let clock: VirtualClock;
before(async () => {
  clock = new VirtualClock(START);
  app = await startTestApp({ clock });
});
after(() => app.stop());

type Body = Record<string, any>;

const read = async (id: string): Promise<Body> => (await app.call("GET", `/v1/jobs/${id}`)).body;
const act = (id: string, action: string, body?: unknown) =>
  app.call<Body>("POST", `/v1/jobs/${id}/${action}`, body);

/** Lets time pass. The engine looks at the wall clock every second, so what lies between need not be lived through. */
async function pass(duration: string): Promise<void> {
  clock.jump(clock.now() + durationMs(duration) - 1_000);
  await clock.advance("1s");
}

/** The job as soon as it is in this state; what brings it there has begun already. */
async function reached(id: string, status: string): Promise<Body> {
  for (;;) {
    const job = await read(id);
    if (job["status"] === status) return job;
  }
}

async function targetOf(t: TestContext) {
  const target = await startTarget((_, count) => ({ body: `{"answer":${count}}` }));
  t.after(() => target.close());
  return target;
}

const timeIn = (ms: number) => new Date(clock.now() + ms).toISOString();

describe("a job that requires approval", () => {
  test("waits, and goes out once it is approved", async (t) => {
    const target = await targetOf(t);
    const job = await app.createJob({ url: target.url, requires_approval: true });
    assert.deepEqual([job["status"], job["actions"]], ["awaiting_approval", ["cancel", "approve", "reject"]]);
    await pass("1d");
    assert.equal(target.received.length, 0);
    const approved = await act(job["id"], "approve", { note: "fine" });
    assert.equal(approved.status, 200, approved.text);
    assert.deepEqual([approved.body["status"], approved.body["approval_note"]], ["pending", "fine"]);
    assert.match(approved.body["approved_by"], /^key_/);
    assert.equal(approved.body["approved_at"], timeIn(0));
    assert.equal((await app.ended(job["id"]))["status"], "completed");
    assert.equal((await act(job["id"], "approve")).body["code"], "not_approvable");
  });

  test("still keeps to its run_at", async (t) => {
    const target = await targetOf(t);
    const job = await app.createJob({ url: target.url, requires_approval: true, delay: "1h" });
    await act(job["id"], "approve");
    await pass("59m");
    assert.equal(target.received.length, 0);
    await pass("1m");
    assert.equal((await app.ended(job["id"]))["status"], "completed");
  });

  test("is rejected by a person, and retry is no way round that", async (t) => {
    const target = await targetOf(t);
    const { id } = await app.createJob({ url: target.url, requires_approval: true });
    const rejected = (await act(id, "reject", { note: "no" })).body;
    assert.deepEqual([rejected["status"], rejected["approval_note"]], ["cancelled", "no"]);
    assert.match(rejected["rejected_by"], /^key_/);
    assert.equal((await act(id, "reject")).status, 409);
    const retried = (await act(id, "retry")).body;
    assert.equal(retried["status"], "awaiting_approval");
    assert.match(retried["rejected_by"], /^key_/);
    const approved = (await act(id, "approve")).body;
    assert.deepEqual([approved["rejected_by"], approved["rejected_at"]], [null, null]);
    assert.equal((await app.ended(id))["status"], "completed");
    assert.equal(target.received.length, 1);
  });

  test("is rejected by the system when approval_timeout passes, also the second time", async () => {
    const { id } = await app.createJob({
      url: "http://127.0.0.1:9/",
      requires_approval: true,
      approval_timeout: "10m",
    });
    for (let i = 0; i < 2; i++) {
      await pass("9m");
      assert.equal((await read(id))["status"], "awaiting_approval");
      await pass("1m");
      const job = await reached(id, "cancelled");
      assert.deepEqual([job["rejected_by"], job["approval_note"]], ["system", "approval_timeout passed"]);
      await act(id, "retry");
    }
  });

  test("goes straight on after a retry when the approval was given", async (t) => {
    const target = await startTarget(() => ({ status: 500 }));
    t.after(() => target.close());
    const { id } = await app.createJob({ url: target.url, requires_approval: true, max_attempts: 1 });
    await act(id, "approve");
    assert.equal((await app.ended(id))["status"], "failed");
    assert.equal((await act(id, "retry")).body["status"], "pending");
    assert.equal((await app.ended(id))["attempts"], 2);
  });
});

describe("a step that requires approval", () => {
  const steps = (url: string, more: Body = {}) => [
    { name: "draft", url },
    { name: "send", url, requires_approval: true, ...more },
    { name: "log", url },
  ];

  test("holds the pipeline before it, with the responses so far to see", async (t) => {
    const target = await targetOf(t);
    const { id } = await app.createJob({ steps: steps(target.url) });
    const held = await reached(id, "awaiting_approval");
    assert.equal(target.received.length, 1);
    assert.deepEqual(
      held["steps"].map((step: Body) => [step["name"], step["status"], step["response_body"]]),
      [
        ["draft", "completed", { answer: 1 }],
        ["send", "awaiting_approval", null],
        ["log", "pending", null],
      ],
    );
    assert.deepEqual([held["attempts"], held["retries_remaining"], held["next_retry_at"]], [0, 2, null]);
    const attempts = (await app.call("GET", `/v1/jobs/${id}/attempts`)).body["data"];
    assert.equal(attempts[0].decision, "Done; step send waits for approval.");

    await act(id, "approve");
    const done = await app.ended(id);
    assert.equal(done["status"], "completed");
    assert.deepEqual(
      done["steps"].map((step: Body) => step["approved_at"] !== null),
      [false, true, false],
    );
    assert.deepEqual(
      target.received.map(({ body }) => body),
      ["", `{"answer":1}`, `{"answer":2}`],
    );
  });

  test("is rejected, by a person or in time by the system; the step before is kept", async (t) => {
    const target = await targetOf(t);
    const { id } = await app.createJob({ approval_timeout: "10m", steps: steps(target.url) });
    await reached(id, "awaiting_approval");
    const rejected = (await act(id, "reject")).body;
    assert.deepEqual(
      rejected["steps"].map((step: Body) => step["status"]),
      ["completed", "cancelled", "cancelled"],
    );
    assert.equal((await act(id, "retry")).body["status"], "awaiting_approval");
    await pass("10m");
    const timedOut = await reached(id, "cancelled");
    assert.equal(timedOut["rejected_by"], "system");
    assert.equal((await act(id, "retry")).body["status"], "awaiting_approval");
    await act(id, "approve");
    assert.equal((await app.ended(id))["status"], "completed");
    assert.equal(target.received.length, 3);
  });

  test("has the timeout anew at each hold", async (t) => {
    const target = await targetOf(t);
    const { id } = await app.createJob({
      approval_timeout: "10m",
      requires_approval: true,
      steps: steps(target.url),
    });
    await pass("9m");
    await act(id, "approve");
    const held = await reached(id, "awaiting_approval");
    assert.equal(held["approved_at"], held["steps"][0].approved_at);
    await pass("9m");
    assert.equal((await read(id))["status"], "awaiting_approval");
    await pass("1m");
    assert.equal((await reached(id, "cancelled"))["rejected_by"], "system");
  });

  test("is delayed from its approval on; a cancelled one can be retried", async (t) => {
    const target = await targetOf(t);
    const { id } = await app.createJob({ steps: steps(target.url, { delay: "5m" }) });
    await reached(id, "awaiting_approval");
    await pass("1h");
    await act(id, "approve");
    await pass("4m");
    assert.equal(target.received.length, 1);
    assert.equal((await act(id, "cancel")).body["status"], "cancelled");
    assert.equal((await act(id, "retry")).body["status"], "pending");
    assert.equal((await app.ended(id))["status"], "completed");
  });

  test("and that is the first: one approval is enough for it and for the job", async (t) => {
    const target = await targetOf(t);
    const { id, status } = await app.createJob({
      requires_approval: true,
      steps: [{ url: target.url, requires_approval: true }],
    });
    assert.equal(status, "awaiting_approval");
    await act(id, "approve");
    assert.equal((await app.ended(id))["status"], "completed");
  });

  test("needs its own approval, whatever was approved before", async (t) => {
    const target = await targetOf(t);
    const { id } = await app.createJob({ requires_approval: true, steps: steps(target.url) });
    await act(id, "approve");
    await reached(id, "awaiting_approval");
    await act(id, "cancel");
    assert.equal((await act(id, "retry")).body["status"], "awaiting_approval");
    await act(id, "approve");
    assert.equal((await app.ended(id))["status"], "completed");
  });
});

describe("delays", () => {
  test("of the job and of its first step add up; each later step waits for its own", async (t) => {
    const target = await targetOf(t);
    const { id, run_at: runAt } = await app.createJob({
      delay: "10m",
      steps: [
        { url: target.url, delay: "5m" },
        { url: target.url, delay: "1h" },
      ],
    });
    assert.equal(runAt, timeIn(600_000));
    await pass("14m");
    assert.equal(target.received.length, 0);
    await pass("1m");
    await target.request(1);
    let job = await read(id);
    while (job["steps"][0].status !== "completed") job = await read(id);
    assert.deepEqual([job["status"], job["next_retry_at"], job["attempts"]], ["pending", null, 0]);
    await pass("59m");
    assert.equal(target.received.length, 1);
    await pass("1m");
    assert.equal((await app.ended(id))["status"], "completed");
  });

  test("of a step that failed follow its own rules, and the job speaks of that step", async (t) => {
    const target = await startTarget((_, count) => (count === 2 ? { status: 503 } : { body: "{}" }));
    t.after(() => target.close());
    const { id } = await app.createJob({
      retry_delays: ["1h"],
      steps: [{ url: target.url }, { url: target.url, retry_delays: ["2m"], max_attempts: 4 }],
    });
    await target.request(2);
    let job = await read(id);
    while (job["next_retry_at"] === null) job = await read(id);
    assert.deepEqual(
      [job["status"], job["attempts"], job["retries_remaining"], job["next_retry_at"], job["response_code"]],
      ["pending", 1, 3, timeIn(120_000), 503],
    );
    assert.equal(job["steps"][1].last_error, "The target answered 503.");
    await pass("2m");
    const done = await app.ended(id);
    assert.deepEqual([done["status"], done["attempts"]], ["completed", 2]);
  });

  test("of a schedule's steps are kept, with all else of them", async (t) => {
    const target = await targetOf(t);
    const created = await app.call<Body>(
      "POST",
      "/v1/schedules",
      `{"cron_expr":"0 12 * * *","payload":{"n":1.0},"callback_url":"${target.url}","steps":[{"name":"a","url":"${target.url}","delay":"5m","payload":{"big":9007199254740993,"in":{"$from":"input#/n"}},"headers":{"x-api-key":"s3cret"}},{"name":"b","url":"${target.url}","requires_approval":true}]}`,
    );
    assert.equal(created.status, 201, created.text);
    assert.match(created.text, /"payload":\{"big":9007199254740993,"in":\{"\$from":"input#\/n"\}\}/);
    assert.match(created.text, /"x-api-key":"\*\*\*"/);
    const due = Date.parse(created.body["next_run_at"]);
    clock.jump(due - 1_000);
    await clock.advance("1s");
    await pass("299s");
    assert.equal(target.received.length, 0);
    await clock.advance("1s");
    const sent = await target.request(1);
    assert.equal(sent.body, `{"big":9007199254740993,"in":1.0}`);
    assert.equal(sent.headers["x-api-key"], "s3cret");
    assert.equal(sent.headers["errand-schedule-id"], created.body["id"]);
    const id = String(sent.headers["errand-job-id"]);
    const held = await reached(id, "awaiting_approval");
    assert.equal(held["schedule_id"], created.body["id"]);
    await act(id, "reject");
    assert.equal(JSON.parse((await target.request(2)).body).type, "job.cancelled");
    await app.call("DELETE", `/v1/schedules/${created.body["id"]}`);
  });
});
