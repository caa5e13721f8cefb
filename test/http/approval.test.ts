/** Jobs that wait for a person: approve, reject, notes, `approval_timeout`, and no way round. */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { startTestApp, type TestApp } from "../support/app.ts";
import { VirtualClock } from "../support/clock.ts";
import { startTarget, type Target } from "../support/target.ts";

describe("approval", () => {
  const clock = new VirtualClock();
  let app: TestApp;
  let target: Target;
  before(async () => {
    app = await startTestApp({ clock });
    target = await startTarget();
  });
  after(async () => {
    await app.stop();
    await target.close();
  });

  const waiting = (fields: object = {}) =>
    app.createJob({ url: target.url, requires_approval: true, ...fields });
  const act = (job: Record<string, any>, action: string, body?: unknown, key?: string) =>
    app.call(
      "POST",
      `/v1/jobs/${job["id"]}/${action}`,
      body,
      key === undefined ? {} : { authorization: `Bearer ${key}` },
    );
  const read = async (job: Record<string, any>) => (await app.call("GET", `/v1/jobs/${job["id"]}`)).body;
  const keyOf = async (...scopes: string[]) =>
    (await app.call("POST", "/v1/keys", { name: scopes.join(), scopes })).body as { id: string; key: string };

  test("nothing is sent before it is approved; who, when and why are kept", async () => {
    const job = await waiting();
    assert.equal(job["status"], "awaiting_approval");
    assert.deepEqual(job["actions"], ["cancel", "approve", "reject"]);
    await clock.leap("1d");
    const approver = await keyOf("approve", "read");
    assert.equal(target.received.length, 0);
    const approved = await act(job, "approve", { note: "looks right" }, approver.key);
    assert.equal(approved.status, 200);
    assert.equal(approved.body["approved_by"], approver.id);
    assert.equal(approved.body["approval_note"], "looks right");
    assert.equal(approved.body["approved_at"], "2026-01-06T00:00:00.000Z");
    const ended = await app.ended(job["id"]);
    assert.equal(ended["status"], "completed");
    assert.equal(target.received.at(-1)?.headers["errand-job-id"], job["id"]);
    const again = await act(job, "approve");
    assert.equal(again.status, 409);
    assert.match(again.body["detail"], /completed/);
  });

  test("a key without the scope approve can neither approve nor reject, and is shown no such action", async () => {
    const enqueuer = await keyOf("read", "write", "admin");
    const made = await app.call(
      "POST",
      "/v1/jobs",
      { url: target.url, requires_approval: true },
      { authorization: `Bearer ${enqueuer.key}` },
    );
    assert.deepEqual(made.body["actions"], ["cancel"]);
    for (const action of ["approve", "reject"]) {
      const answer = await act(made.body, action, {}, enqueuer.key);
      assert.equal(answer.status, 403);
      assert.match(answer.body["detail"], /approve/);
    }
    assert.equal((await read(made.body))["status"], "awaiting_approval");
  });

  test("run_at still holds after an approval", async () => {
    const job = await waiting({ delay: "2h" });
    const approved = await act(job, "approve");
    assert.equal(approved.body["status"], "pending");
    const sent = target.received.length;
    await clock.leap("1h");
    assert.equal((await read(job))["status"], "pending");
    assert.equal(target.received.length, sent);
    await clock.leap("1h");
    assert.equal((await app.ended(job["id"]))["status"], "completed");
  });

  test("reject cancels, and tells the waiting", async () => {
    const job = await waiting();
    const ended = app.ended(job["id"]);
    const rejected = await act(job, "reject", { note: "not today" });
    assert.equal(rejected.body["status"], "cancelled");
    assert.equal(rejected.body["approval_note"], "not today");
    assert.match(rejected.body["rejected_by"], /^key_/);
    assert.notEqual(rejected.body["rejected_at"], null);
    assert.equal((await ended)["status"], "cancelled");
  });

  test("approval_timeout rejects in the name of the system, to the millisecond", async () => {
    const job = await waiting({ approval_timeout: "30m" });
    const never = await waiting();
    await clock.leap(1_800_000 - 1);
    assert.equal((await read(job))["status"], "awaiting_approval");
    await clock.leap(1);
    const rejected = await read(job);
    assert.equal(rejected["status"], "cancelled");
    assert.equal(rejected["rejected_by"], "system");
    assert.equal((await act(job, "approve")).status, 409);
    assert.equal((await read(never))["status"], "awaiting_approval");
  });

  test("an approval_timeout that passed while the service was down is kept at the next start", async () => {
    const job = await waiting({ approval_timeout: "1h" });
    await app.stop({ keep: true });
    await clock.leap("2h");
    app = await startTestApp({ clock, folder: app.folder });
    await clock.leap(0);
    assert.equal((await read(job))["rejected_by"], "system");
  });

  test("retry is no way round a rejection, a timeout or a cancel", async () => {
    const sent = target.received.length;
    for (const end of ["reject", "cancel", "timeout"]) {
      const job = await waiting({ approval_timeout: "1m" });
      if (end === "timeout") await clock.leap("1m");
      else await act(job, end);
      assert.equal((await read(job))["status"], "cancelled", end);
      const retried = await act(job, "retry");
      assert.equal(retried.body["status"], "awaiting_approval");
      await act(job, "cancel");
      const bulk = await app.call("POST", "/v1/jobs/retry", { status: ["cancelled"] });
      assert.ok(bulk.body["count"] >= 1);
      assert.equal((await read(job))["status"], "awaiting_approval");
    }
    assert.equal(target.received.length, sent);
  });

  test("once given, an approval is not asked for again", async () => {
    const failing = await startTarget((_, count) => ({ status: count === 1 ? 500 : 200 }));
    const job = await waiting({ url: failing.url, max_attempts: 1 });
    await act(job, "approve");
    assert.equal((await app.ended(job["id"]))["status"], "failed");
    assert.equal((await act(job, "retry")).body["status"], "pending");
    const ended = await app.ended(job["id"]);
    assert.equal(ended["status"], "completed");
    assert.equal(ended["attempts"], 2);
    await failing.close();
  });
});
