/** The main job, end to end over real HTTP: enqueue, deliver, sign, retry, read back. */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { Webhook } from "standardwebhooks";
import { startTestApp, type TestApp } from "../support/app.ts";
import { startTarget } from "../support/target.ts";

describe("the main job", () => {
  let app: TestApp;
  before(async () => {
    app = await startTestApp();
  });
  after(() => app.stop());

  test("a job is delivered as it was given, and the answer is read back", async () => {
    const target = await startTarget(() => ({
      status: 201,
      headers: { "x-kind": "test", "x-name": "Jürgen" },
      body: `{"id":12345678901234567890}`,
    }));
    const body = `{"url":"${target.url}","payload":{"b":1.0,"a":9007199254740993,"t":"\\u00e9"},"headers":{"x-mine":"1","x-name":"Jürgen","authorization":"Bearer s3cret"}}`;
    const created = await app.call("POST", "/v1/jobs", body);
    assert.equal(created.status, 201);
    assert.equal(created.headers.get("location"), `/v1/jobs/${created.body.id}`);
    const job = await app.ended(created.body.id);

    const [received] = target.received;
    assert.equal(received?.body, `{"b":1.0,"a":9007199254740993,"t":"\\u00e9"}`);
    assert.equal(received?.headers["content-type"], "application/json");
    assert.equal(received?.headers["x-mine"], "1");
    assert.equal(received?.headers["x-name"], "Jürgen", "as it was given, in ISO-8859-1, not in UTF-8");
    assert.equal(received?.headers.authorization, "Bearer s3cret");
    assert.equal(received?.headers["errand-job-id"], job.id);
    assert.equal(received?.headers["errand-attempt"], "1");
    assert.match(received?.headers["user-agent"] ?? "", /^Errand\//);

    assert.equal(job.status, "completed");
    assert.equal(job.response_code, 201);
    assert.equal(job.response_headers["x-kind"], "test");
    assert.equal(job.response_headers["x-name"], "Jürgen");
    assert.equal(job.headers.authorization, "***");
    assert.equal(typeof job.duration_ms, "number");
    const raw = await app.call("GET", `/v1/jobs/${job.id}`);
    assert.match(raw.text, /"response_body":\{"id":12345678901234567890\}/);
    assert.match(raw.text, /"payload":\{"b":1\.0,"a":9007199254740993,"t":"\\u00e9"\}/);
    await target.close();
  });

  test("a failure is retried after its delay, signed anew under the same id, and both attempts are told", async () => {
    const target = await startTarget((_, count) =>
      count === 1 ? { status: 503, body: "busy" } : { body: "{}" },
    );
    const { id } = await app.createJob({ url: target.url, payload: { n: 1 }, retry_delays: ["0s"] });
    const job = await app.ended(id);
    assert.equal(job.status, "completed");
    assert.equal(job.attempts, 2);

    const secrets = await app.call("GET", "/v1/signing-secrets");
    assert.equal(secrets.status, 200, secrets.text);
    const webhook = new Webhook(secrets.body.data[0].secret);
    for (const received of target.received)
      webhook.verify(received.body, received.headers as Record<string, string>);
    assert.deepEqual(
      target.received.map(({ headers }) => headers["webhook-id"]),
      [id, id],
    );

    const attempts = await app.call("GET", `/v1/jobs/${id}/attempts`);
    const [first, second] = attempts.body.data;
    assert.equal(first.response_code, 503);
    assert.equal(first.response_body, "busy");
    assert.equal(first.error_code, "http_status");
    assert.match(first.decision, /^Retry in 0 ms, at .*, 2 of 3 attempts left/);
    assert.match(second.decision, /^Completed/);
    await target.close();
  });

  test("no_retry_on ends the job at once", async () => {
    const target = await startTarget(() => ({ status: 404 }));
    const { id } = await app.createJob({ url: target.url, no_retry_on: ["4xx"] });
    const job = await app.ended(id);
    assert.equal(job.status, "failed");
    assert.equal(job.attempts, 1);
    assert.equal(job.last_error, "The target answered 404.");
    await target.close();
  });

  test("a delayed job waits, and can be cancelled once", async () => {
    const { id, status, run_at: runAt } = await app.createJob({ url: "http://127.0.0.1:9/", delay: "1h" });
    assert.equal(status, "pending");
    assert.ok(Date.parse(runAt) > Date.now() + 3_500_000);
    const cancelled = await app.call("POST", `/v1/jobs/${id}/cancel`);
    assert.equal(cancelled.body.status, "cancelled");
    const again = await app.call("POST", `/v1/jobs/${id}/cancel`);
    assert.equal(again.status, 409);
    assert.equal(again.body.code, "not_cancellable");
    assert.match(again.body.detail, /cancelled/);
  });
});
