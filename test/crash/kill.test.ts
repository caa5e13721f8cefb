/** kill -9 at every point of a delivery: nothing that was acknowledged is lost, and what was under way is sent again. */
import assert from "node:assert/strict";
import { describe, type TestContext, test } from "node:test";
import { temporaryFolder } from "../support/app.ts";
import { startProcess, type TestProcess } from "../support/process.ts";
import { gate, startTarget } from "../support/target.ts";

/** Starts the service on the folder; the last one to use it removes it. */
async function start(t: TestContext, folder: string): Promise<TestProcess> {
  const service = await startProcess({ folder });
  t.after(() => service.cleanUp());
  return service;
}

async function create(service: TestProcess, fields: Record<string, unknown>): Promise<Record<string, any>> {
  const { status, text, body } = await service.call("POST", "/v1/jobs", fields);
  assert.equal(status, 201, text);
  return body;
}

const ended = async (service: TestProcess, id: string) =>
  (await service.call("GET", `/v1/jobs/${id}?wait=30s`)).body;

describe("kill -9", () => {
  test("before the send: the job is sent by the next start", async (t) => {
    const folder = temporaryFolder();
    const target = await startTarget();
    t.after(() => target.close());
    const first = await start(t, folder);
    const job = await create(first, { url: target.url, delay: "2s" });
    await first.kill();
    assert.equal(target.received.length, 0);
    const second = await start(t, folder);
    assert.equal((await ended(second, job.id)).status, "completed");
    assert.equal(target.received.length, 1);
  });

  test("while the target holds its answer: sent again under the same id, and not counted", async (t) => {
    const folder = temporaryFolder();
    const { wait, open } = gate();
    const target = await startTarget((_, count) => (count === 1 ? { wait } : {}));
    t.after(() => target.close());
    const first = await start(t, folder);
    const job = await create(first, { url: target.url, max_attempts: 1 });
    await target.request(1);
    await first.kill();
    const second = await start(t, folder);
    const done = await ended(second, job.id);
    open();
    assert.deepEqual([done.status, done.attempts], ["completed", 2]);
    const ids = target.received.map(({ headers }) => headers["webhook-id"]);
    assert.deepEqual(ids, [job.id, job.id]);
    const { body } = await second.call<any>("GET", `/v1/jobs/${job.id}/attempts`);
    assert.deepEqual(
      body.data.map((attempt: any) => attempt.error_code),
      ["interrupted", null],
    );
  });

  test("by the target, between its 200 and the stored outcome: sent again, never lost", async (t) => {
    const folder = temporaryFolder();
    let first: TestProcess | null = null;
    const target = await startTarget((_, count) => {
      const body = `{"count":${count}}`;
      if (count > 1 || first === null) return { body };
      // It stands still while the whole answer comes in, so that it cannot have stored it.
      const service = first;
      process.kill(service.pid, "SIGSTOP");
      return { body, sent: () => void service.kill() };
    });
    t.after(() => target.close());
    first = await start(t, folder);
    // With a delay, since a job may be sent before its create was answered.
    const job = await create(first, { url: target.url, delay: "1s" });
    await first.gone;
    const second = await start(t, folder);
    const done = await ended(second, job.id);
    assert.deepEqual([done.status, done.response_body, done.attempts], ["completed", { count: 2 }, 2]);
  });

  test("three times by the same job: it is failed, and the service lives", async (t) => {
    const folder = temporaryFolder();
    let service: TestProcess | null = null;
    const target = await startTarget(async () => {
      await service?.kill();
      return {};
    });
    t.after(() => target.close());
    service = await start(t, folder);
    const job = await create(service, { url: target.url, max_attempts: 1, delay: "1s" });
    for (const n of [1, 2, 3]) {
      await target.request(n);
      service = await start(t, folder);
    }
    const done = await ended(service, job.id);
    assert.deepEqual([done.status, done.last_error_code, done.attempts], ["failed", "interrupted", 3]);
    assert.equal(target.received.length, 3);
    const other = await startTarget();
    t.after(() => other.close());
    const next = await create(service, { url: other.url });
    assert.equal((await ended(service, next.id)).status, "completed");
  });

  test("under load: every acknowledged job is there, and nothing stays active", async (t) => {
    const folder = temporaryFolder();
    const acknowledged = new Set<string>();
    const delivered = new Map<string, number>();
    const target = await startTarget(({ headers }) => {
      const id = String(headers["webhook-id"]);
      delivered.set(id, (delivered.get(id) ?? 0) + 1);
      return {};
    });
    t.after(() => target.close());

    for (let round = 0; round < 4; round++) {
      const service = await start(t, folder);
      const before = acknowledged.size;
      const { promise: enough, resolve } = Promise.withResolvers<void>();
      const clients = Array.from({ length: 8 }, async () => {
        for (;;) {
          const answer = await service.call<any>("POST", "/v1/jobs", { url: target.url }).catch(() => null);
          if (answer === null) return;
          if (answer.status === 201) acknowledged.add(answer.body.id);
          if (acknowledged.size >= before + 60 + round * 17) resolve();
        }
      });
      await enough;
      await service.kill();
      await Promise.all(clients);
    }

    const last = await start(t, folder);
    for (const id of acknowledged) {
      const { status, body } = await last.call<any>("GET", `/v1/jobs/${id}?wait=30s`);
      assert.deepEqual([status, body.status], [200, "completed"], id);
      assert.ok((delivered.get(id) ?? 0) >= 1, "the target got it");
    }
    const { body } = await last.call<any>("GET", "/v1/jobs?status=active");
    assert.deepEqual(body.data, []);
    assert.ok(acknowledged.size >= 340);
  });
});
