/** Bulk cancel and bulk retry: by filter, whole, and without standing in the way of anyone. */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { startTestApp, type TestApp } from "../support/app.ts";
import { startTarget } from "../support/target.ts";

const url = "http://127.0.0.1:9/hook";

describe("bulk operations", () => {
  let app: TestApp;
  before(async () => {
    app = await startTestApp();
  });
  after(() => app.stop());

  async function enqueue(count: number, fields: object): Promise<string[]> {
    const ids: string[] = [];
    for (let rest = count; rest > 0; rest -= 1_000) {
      const jobs = Array.from({ length: Math.min(rest, 1_000) }, () => fields);
      const { body } = await app.call("POST", "/v1/jobs/batch", { jobs });
      ids.push(...body["data"].map(({ id }: { id: string }) => id));
    }
    return ids;
  }

  test("a missing body does not cancel everything; an empty filter does", async () => {
    await enqueue(3, { url, delay: "1h" });
    assert.equal((await app.call("POST", "/v1/jobs/cancel")).status, 400);
    assert.deepEqual((await app.call("POST", "/v1/jobs/cancel", {})).body, { count: 3 });
    assert.deepEqual((await app.call("POST", "/v1/jobs/cancel", {})).body, { count: 0 });
  });

  test("no state at all is not every state", async () => {
    const ids = await enqueue(1, { url, delay: "1h", queue: "kept" });
    for (const action of ["cancel", "retry"]) {
      const answer = await app.call("POST", `/v1/jobs/${action}`, { queue: "kept", status: [] });
      assert.equal(answer.status, 422);
      assert.deepEqual(answer.body["errors"], [
        { pointer: "/status", detail: "has to name at least one state; leave it out for all of them" },
      ]);
    }
    assert.equal((await app.call("GET", `/v1/jobs/${ids[0]}`)).body["status"], "pending");
    await app.call("POST", "/v1/jobs/cancel", { queue: "kept" });
  });

  test("filters choose, and states that do not allow it are left alone", async () => {
    const fields = { url, delay: "1h", queue: "chosen" };
    await enqueue(2, { ...fields, tags: ["a"] });
    await enqueue(3, { ...fields, tags: ["b"] });
    await enqueue(1, { ...fields, requires_approval: true });
    const cancel = async (filter: object) =>
      (await app.call("POST", "/v1/jobs/cancel", { queue: "chosen", ...filter })).body["count"];
    assert.equal(await cancel({ tag: "a" }), 2);
    assert.equal(await cancel({ status: ["awaiting_approval"] }), 1);
    assert.equal(await cancel({ url_contains: "nowhere" }), 0);
    assert.equal(await cancel({}), 3);
    const retried = await app.call("POST", "/v1/jobs/retry", { queue: "chosen", status: ["failed"] });
    assert.deepEqual(retried.body, { count: 0 });
  });

  test("thousands are cancelled and retried whole, while others are served", async () => {
    const count = 5_000;
    await app.call("PUT", "/v1/queues/many", {});
    await app.call("POST", "/v1/queues/many/pause");
    await enqueue(count, { url, queue: "many" });
    const counts = async () => (await app.call("GET", "/v1/queues/many")).body["counts"];
    for (const [action, state] of [
      ["cancel", "cancelled"],
      ["retry", "pending"],
    ] as const) {
      let done = false;
      let servedMeanwhile = 0;
      const bulk = app.call("POST", `/v1/jobs/${action}`, { queue: "many" }).then((answer) => {
        done = true;
        return answer;
      });
      for (;;) {
        assert.equal((await app.call("POST", "/v1/jobs", { url, delay: "1h" })).status, 201);
        if (done) break;
        servedMeanwhile += 1;
      }
      assert.deepEqual((await bulk).body, { count });
      assert.ok(servedMeanwhile > 3, `${servedMeanwhile} were served meanwhile`);
      assert.equal((await counts())[state], count);
    }
  });

  test("failed jobs are retried with a new budget and keep their history", async () => {
    let isUp = false;
    const target = await startTarget(() => ({ status: isUp ? 200 : 500 }));
    const ids = await enqueue(20, { url: target.url, max_attempts: 2, retry_delays: ["0s"], queue: "down" });
    for (const id of ids) assert.equal((await app.ended(id))["status"], "failed");
    isUp = true;
    assert.deepEqual((await app.call("POST", "/v1/jobs/retry", { queue: "down" })).body, { count: 20 });
    for (const id of ids) {
      const job = await app.ended(id);
      assert.deepEqual([job["status"], job["attempts"]], ["completed", 3]);
      const { body } = await app.call("GET", `/v1/jobs/${id}/attempts`);
      assert.deepEqual(
        body["data"].map(({ response_code }: any) => response_code),
        [500, 500, 200],
      );
    }
    await target.close();
  });
});
