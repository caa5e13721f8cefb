/** Twice is once: `Idempotency-Key` and `dedupe_key`, and that both expire by themselves. */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { type Answer, startTestApp, type TestApp } from "../support/app.ts";
import { VirtualClock } from "../support/clock.ts";
import { startTarget } from "../support/target.ts";

const url = "http://127.0.0.1:9/hook";
const DELAYED = { url, delay: "300d" };

function assertReplay(first: Answer, second: Answer): void {
  assert.equal(second.status, first.status);
  assert.equal(second.text, first.text);
  assert.equal(second.headers.get("location"), first.headers.get("location"));
  assert.equal(second.headers.get("content-type"), first.headers.get("content-type"));
  assert.equal(first.headers.get("idempotency-replayed"), null);
  assert.equal(second.headers.get("idempotency-replayed"), "true");
}

describe("Idempotency-Key", () => {
  const clock = new VirtualClock();
  let app: TestApp;
  before(async () => {
    app = await startTestApp({ clock, config: { rateLimit: 0 } });
  });
  after(() => app.stop());

  const jobs = async () => (await app.call("GET", "/v1/usage?month=2026-01")).body["jobs"] as number;
  const post = (path: string, body: unknown, key: string) =>
    app.call("POST", path, body, { "idempotency-key": key });

  test("every POST that creates is replayed byte for byte", async () => {
    const table: [path: string, body: unknown][] = [
      ["/v1/jobs", `{"url":"${url}","delay":"1h","payload":{"b":1.0,"a":9007199254740993}}`],
      ["/v1/jobs/batch", { jobs: [DELAYED, DELAYED] }],
      ["/v1/schedules", { cron_expr: "0 0 1 1 *", url, name: "once" }],
      ["/v1/keys", { name: "once", scopes: ["read"] }],
      ["/v1/signing-secrets/rotate", { overlap: "1h" }],
    ];
    for (const [i, [path, body]] of table.entries()) {
      const first = await post(path, body, `every-${i}`);
      assert.ok(first.status < 300, first.text);
      assertReplay(first, await post(path, body, `every-${i}`));
      assertReplay(first, await post(path, body, `"every-${i}"`));
    }
    assert.equal((await app.call("GET", "/v1/signing-secrets")).body["data"].length, 2);
  });

  test("the answer stays what it was when the job has moved on", async () => {
    const first = await post("/v1/jobs", DELAYED, "moved");
    await app.call("POST", `/v1/jobs/${first.body["id"]}/cancel`);
    assertReplay(first, await post("/v1/jobs", DELAYED, "moved"));
    assert.equal(first.body["idempotency_key"], "moved");
  });

  test("a trigger is replayed when its schedule is gone since; without its key there is nothing to trigger", async () => {
    const { body } = await app.call("POST", "/v1/schedules", { cron_expr: "0 0 1 1 *", url });
    const path = `/v1/schedules/${body["id"]}`;
    const first = await post(`${path}/trigger`, {}, "trigger");
    assert.equal((await app.call("DELETE", path)).status, 204);
    assertReplay(first, await post(`${path}/trigger`, {}, "trigger"));
    assert.equal((await post(`${path}/trigger`, {}, "another-trigger")).status, 404);
  });

  test("another body, or another operation, under the same key is 422 and makes nothing", async () => {
    await post("/v1/jobs", DELAYED, "other");
    const count = await jobs();
    for (const [path, body] of [
      ["/v1/jobs", { ...DELAYED, payload: null }],
      ["/v1/jobs", { ...DELAYED, delay: "301d" }],
      ["/v1/jobs/batch", { jobs: [DELAYED] }],
      ["/v1/keys", { name: "a", scopes: ["admin"] }],
    ] as const) {
      const answer = await post(path, body, "other");
      assert.equal(answer.status, 422);
      assert.equal(answer.body["code"], "idempotency_key_reused");
    }
    assert.equal(await jobs(), count);
  });

  test("a refused request leaves the key free", async () => {
    assert.equal((await post("/v1/jobs", { url: "x" }, "refused")).status, 422);
    assert.equal((await post("/v1/jobs", DELAYED, "refused")).status, 201);
  });

  test("fifty at once make one job and fifty equal answers", async () => {
    const count = await jobs();
    const answers = await Promise.all(Array.from({ length: 50 }, () => post("/v1/jobs", DELAYED, "fifty")));
    assert.deepEqual([...new Set(answers.map(({ status }) => status))], [201]);
    assert.equal(new Set(answers.map(({ text }) => text)).size, 1);
    assert.equal(answers.filter(({ headers }) => headers.get("idempotency-replayed") === null).length, 1);
    assert.equal(await jobs(), count + 1);
  });

  test("it lasts through a restart, for 24 hours and no longer", async () => {
    const first = await post("/v1/jobs", DELAYED, "day");
    await app.stop({ keep: true });
    app = await startTestApp({ clock, folder: app.folder, config: { rateLimit: 0 } });
    await clock.leap(86_400_000 - 1);
    assertReplay(first, await post("/v1/jobs", DELAYED, "day"));
    await clock.leap(1);
    const later = await post("/v1/jobs", DELAYED, "day");
    assert.equal(later.status, 201);
    assert.equal(later.headers.get("idempotency-replayed"), null);
    assert.notEqual(later.body["id"], first.body["id"]);
    await clock.leap("23h");
    assertReplay(later, await post("/v1/jobs", DELAYED, "day"));
  });
});

describe("dedupe_key", () => {
  const clock = new VirtualClock();
  let app: TestApp;
  before(async () => {
    app = await startTestApp({ clock });
  });
  after(() => app.stop());

  const create = (fields: object) => app.call("POST", "/v1/jobs", { ...DELAYED, ...fields });

  test("while the job is unfinished, however old: 200, that job, deduplicated", async () => {
    const first = await create({ dedupe_key: "open", dedupe_window: "1s" });
    assert.equal(first.status, 201);
    assert.equal(first.body["deduplicated"], false);
    await clock.leap("40d");
    // Over queues and URLs: the key alone counts.
    const second = await create({ dedupe_key: "open", dedupe_window: "1s", url: `${url}/2`, queue: "x" });
    assert.equal(second.status, 200);
    assert.equal(second.headers.get("location"), `/v1/jobs/${first.body["id"]}`);
    assert.deepEqual({ ...second.body, deduplicated: false }, first.body);
    assert.equal(second.body["deduplicated"], true);
    assert.equal((await app.call("GET", `/v1/jobs/${first.body["id"]}`)).body["deduplicated"], false);
    assert.equal((await create({ dedupe_key: "other" })).status, 201);
    assert.equal((await create({})).status, 201);
  });

  test("a finished job counts for the window of the newer create", async () => {
    const target = await startTarget();
    const job = { url: target.url, dedupe_key: "done", delay: "0s" };
    const first = await create(job);
    assert.equal((await app.ended(first.body["id"]))["status"], "completed");
    await clock.leap(3_600_000 - 1);
    assert.equal((await create({ ...job, dedupe_window: "1h" })).body["id"], first.body["id"]);
    assert.equal((await create(job)).status, 200);
    await clock.leap(1);
    assert.equal((await create({ ...job, dedupe_window: "2h" })).status, 200);
    const second = await create({ ...job, dedupe_window: "1h" });
    assert.equal(second.status, 201);
    assert.notEqual(second.body["id"], first.body["id"]);
    await app.ended(second.body["id"]);
    assert.equal(target.received.length, 2);
    await target.close();
  });

  test("a failed job counts, a cancelled one does not", async () => {
    const target = await startTarget(() => ({ status: 404 }));
    const failing = { url: target.url, delay: "0s", no_retry_on: [404], dedupe_key: "failed" };
    const failed = await create(failing);
    assert.equal((await app.ended(failed.body["id"]))["status"], "failed");
    assert.equal((await create(failing)).body["id"], failed.body["id"]);
    const cancelled = await create({ dedupe_key: "cancelled" });
    await app.call("POST", `/v1/jobs/${cancelled.body["id"]}/cancel`);
    assert.equal((await create({ dedupe_key: "cancelled" })).status, 201);
    await target.close();
  });

  test("fifty at once make one job; a batch is deduplicated within itself", async () => {
    const answers = await Promise.all(Array.from({ length: 50 }, () => create({ dedupe_key: "fifty" })));
    assert.equal(new Set(answers.map(({ body }) => body["id"])).size, 1);
    assert.equal(answers.filter(({ status }) => status === 201).length, 1);
    assert.equal(answers.filter(({ body }) => body["deduplicated"]).length, 49);
    const batch = await app.call("POST", "/v1/jobs/batch", {
      jobs: [
        { ...DELAYED, dedupe_key: "batch" },
        { ...DELAYED, dedupe_key: "batch" },
        { ...DELAYED, dedupe_key: "fifty" },
      ],
    });
    assert.equal(batch.status, 201);
    assert.deepEqual(
      batch.body["data"].map((job: any) => job.deduplicated),
      [false, true, true],
    );
    assert.equal(batch.body["data"][0].id, batch.body["data"][1].id);
  });
});
