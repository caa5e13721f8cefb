/** Bad requests by table: every row of the contract's table of errors, and every field at its bounds and one beyond. */
import assert from "node:assert/strict";
import { request } from "node:http";
import { after, before, describe, test } from "node:test";
import { brotliCompressSync, gzipSync } from "node:zlib";
import { startTestApp, type TestApp } from "../support/app.ts";
import { assertProblem } from "../support/problem.ts";
import { rawRequest } from "../support/raw-request.ts";

const url = "http://127.0.0.1:9/hook";
const DELAYED = { url, delay: "1h" };

describe("the table of errors", () => {
  let app: TestApp;
  before(async () => {
    app = await startTestApp({ config: { maxBodyBytes: 4_096 } });
  });
  after(() => app.stop());

  const deep = (levels: number) =>
    `{"url":"${url}","delay":"1h","payload":${"[".repeat(levels)}${"]".repeat(levels)}}`;

  test("400 invalid_json: not JSON, too deep, missing, a key twice, not UTF-8", async () => {
    for (const body of ["{", "{'a':1}", "", " ", `{"url":"${url}","url":"${url}"}`, deep(64)])
      assertProblem(await app.call("POST", "/v1/jobs", body), 400, "invalid_json");
    assertProblem(await app.call("POST", "/v1/jobs"), 400, "invalid_json");
    assertProblem(
      await app.call("POST", "/v1/jobs", "", { "content-type": "text/plain" }),
      400,
      "invalid_json",
    );
    assert.equal((await app.call("POST", "/v1/jobs", deep(63))).status, 201);
    const latin1 = await new Promise<number | undefined>((resolve) => {
      const outgoing = request(
        `${app.url}/v1/jobs`,
        {
          method: "POST",
          headers: { authorization: `Bearer ${app.key}`, "content-type": "application/json" },
        },
        (incoming) => resolve(incoming.resume().statusCode),
      );
      outgoing.end(Buffer.from(`{"url":"${url}","payload":"\xe9"}`, "latin1"));
    });
    assert.equal(latin1, 400);
  });

  test("401 unauthorized, with WWW-Authenticate", async () => {
    const wrong = [
      "",
      "Bearer",
      "Basic abc",
      `Bearer ${app.key} x`,
      "Bearer errand_test_short",
      `Bearer ${app.key}x`,
    ];
    for (const authorization of wrong) {
      const answer = await app.call("GET", "/v1/jobs", undefined, { authorization });
      assertProblem(answer, 401, "unauthorized");
      assert.match(answer.headers.get("www-authenticate") ?? "", /^Bearer/);
      assert.ok(!answer.text.includes(app.key), "an error must not repeat the key");
    }
    const lower = await app.call("GET", "/v1/jobs", undefined, { authorization: `bearer ${app.key}` });
    assert.equal(lower.status, 200);
  });

  test("403 forbidden names the scope", async () => {
    const made = await app.call("POST", "/v1/keys", { name: "reader", scopes: ["read"] });
    const authorization = `Bearer ${made.body.key}`;
    const answer = await app.call("POST", "/v1/jobs", DELAYED, { authorization });
    assertProblem(answer, 403, "forbidden");
    assert.match(answer.body["detail"], /write.*read/);
  });

  test("404 not_found", async () => {
    const { body } = await app.call("GET", "/");
    assert.equal(body["detail"], "There is nothing at GET /; /docs describes what there is.");
    const paths = [
      "/v1",
      "/v1/",
      "/v1/nothing",
      "/v1/jobs/job_x",
      "/v1/jobs/%ff",
      "/v1/jobs/a%2Fb",
      "/v1/queues/nope",
      "/nope",
    ];
    for (const path of paths) assertProblem(await app.call("GET", path), 404, "not_found");
    assertProblem(await app.call("DELETE", "/v1/keys/key_x"), 404, "not_found");
    assertProblem(await app.call("POST", "/v1/jobs/job_x/cancel"), 404, "not_found");
  });

  test("405 method_not_allowed, with Allow", async () => {
    const table = [
      ["DELETE", "/v1/jobs", "POST, GET, HEAD"],
      ["PATCH", "/v1/queues/a", "GET, PUT, HEAD"],
      ["GET", "/v1/queues/a/pause", "POST"],
      ["POST", "/v1/usage", "GET, HEAD"],
      ["PUT", "/v1/jobs/retry", "POST"],
      ["GET", "/v1/jobs/retry", "POST"],
      ["DELETE", "/v1/jobs/cancel", "POST"],
      ["GET", "/v1/jobs/cancel", "POST"],
      ["GET", "/v1/jobs/batch", "POST"],
      ["OPTIONS", "/v1/jobs/batch", "POST"],
      ["GET", "/v1/schedules/preview", "POST"],
      ["PUT", "/v1/schedules/preview", "POST"],
      ["DELETE", "/v1/schedules/by-name/pause", "PUT"],
      ["POST", "/v1/schedules/by-name/pause", "PUT"],
    ] as const;
    for (const [method, path, allow] of table) {
      const answer = await app.call(method, path);
      assertProblem(answer, 405, "method_not_allowed");
      assert.equal(answer.headers.get("allow"), allow);
    }
    assert.equal((await app.call("HEAD", "/v1/jobs/batch")).status, 405);
    const named = { cron_expr: "0 0 * * *", url };
    assert.equal((await app.call("PUT", "/v1/schedules/by-name/pause", named)).status, 201);
  });

  test("409 names the state", async () => {
    const job = await app.createJob(DELAYED);
    for (const [action, code] of [
      ["retry", "not_retryable"],
      ["approve", "not_approvable"],
      ["reject", "not_approvable"],
    ] as const) {
      const answer = await app.call("POST", `/v1/jobs/${job["id"]}/${action}`);
      assertProblem(answer, 409, code);
      assert.match(answer.body["detail"], /pending/);
    }
    await app.call("POST", `/v1/jobs/${job["id"]}/cancel`);
    const again = await app.call("POST", `/v1/jobs/${job["id"]}/cancel`);
    assertProblem(again, 409, "not_cancellable");
    assert.match(again.body["detail"], /cancelled/);
    const named = { cron_expr: "0 0 * * *", url, name: "nightly" };
    assert.equal((await app.call("POST", "/v1/schedules", named)).status, 201);
    assertProblem(await app.call("POST", "/v1/schedules", named), 409, "name_taken");
  });

  test("413 payload_too_large: at the limit, one over, chunked, and with a lying length", async () => {
    const frame = (length: number) => {
      const start = `{"url":"${url}","delay":"1h","payload":"`;
      return `${start}${"a".repeat(length - start.length - 2)}"}`;
    };
    assert.equal((await app.call("POST", "/v1/jobs", frame(4_096))).status, 201);
    assertProblem(await app.call("POST", "/v1/jobs", frame(4_097)), 413, "payload_too_large");
    const head = `POST /v1/jobs HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${app.key}\r\nContent-Type: application/json\r\n`;
    const chunked = await rawRequest(
      app.port,
      `${head}Transfer-Encoding: chunked\r\n\r\n`,
      `1001\r\n${frame(4_097)}\r\n`,
    );
    assert.equal(chunked.status, 413);
    assert.equal(JSON.parse(chunked.body).code, "payload_too_large");
    const lying = await rawRequest(app.port, `${head}Content-Length: 99999999\r\n\r\n`);
    assert.equal(lying.status, 413);
    assert.equal((await app.call("GET", "/livez")).status, 200);
  });

  test("415 unsupported_media_type", async () => {
    for (const type of [
      "text/plain",
      "application/x-www-form-urlencoded",
      "application/jsonp",
      "application/vnd.x+json",
    ]) {
      const answer = await app.call("POST", "/v1/jobs", DELAYED, { "content-type": type });
      assertProblem(answer, 415, "unsupported_media_type");
      assert.match(answer.body["detail"], /application\/json/);
    }
    for (const type of ["application/json; charset=utf-8", "Application/JSON"])
      assert.equal((await app.call("POST", "/v1/jobs", DELAYED, { "content-type": type })).status, 201);
  });

  test("415 for a compressed body, which says so; identity is none", async () => {
    const head = `POST /v1/jobs HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${app.key}\r\nContent-Type: application/json\r\nConnection: close\r\n`;
    const send = (coding: string, body: Buffer) =>
      rawRequest(
        app.port,
        `${head}Content-Encoding: ${coding}\r\nContent-Length: ${body.length}\r\n\r\n`,
        body,
      );
    const job = Buffer.from(JSON.stringify(DELAYED));
    for (const [coding, body] of [
      ["gzip", gzipSync(job)],
      ["br", brotliCompressSync(job)],
      ["gzip, identity", gzipSync(job)],
      ["gzip", job],
    ] as const) {
      const answer = await send(coding, body);
      assert.equal(answer.status, 415, answer.body);
      assert.equal(answer.headers.get("accept-encoding"), "identity");
      const problem = JSON.parse(answer.body);
      assert.equal(problem.code, "unsupported_media_type");
      assert.match(problem.detail, new RegExp(`Content-Encoding.*${coding}`));
    }
    assert.equal((await send("Identity", job)).status, 201);
    assert.equal(
      (await send("gzip", Buffer.alloc(0))).status,
      400,
      "a missing body is missing in any coding",
    );
  });

  test("a byte order mark before the JSON is named", async () => {
    for (const body of [`\ufeff${JSON.stringify(DELAYED)}`, "\ufeff"]) {
      const answer = await app.call("POST", "/v1/jobs", body);
      assertProblem(answer, 400, "invalid_json");
      assert.match(answer.body["detail"], /byte order mark.*RFC 8259/);
    }
    const inside = await app.call("POST", "/v1/jobs", { ...DELAYED, payload: "\ufeff" });
    assert.equal(inside.status, 201);
  });

  test("422 lists every fault with its pointer", async () => {
    const answer = await app.call("POST", "/v1/jobs", {
      url: 1,
      max_attempts: 0,
      delay: "soon",
      run_at: "2026-01-01T00:00:00Z",
      headers: { host: "x", "a/b": "y" },
      constructor: 1,
      retry_delays: ["1s", "1w"],
    });
    assertProblem(answer, 422, "invalid_request");
    assert.deepEqual(answer.body["errors"].map(({ pointer }: { pointer: string }) => pointer).sort(), [
      "/constructor",
      "/delay",
      "/headers/a~1b",
      "/headers/host",
      "/max_attempts",
      "/retry_delays/1",
      "/run_at",
      "/url",
    ]);
    for (const body of ["[]", "null", "1", `"x"`])
      assertProblem(await app.call("POST", "/v1/jobs", body), 422, "invalid_request");
    assertProblem(await app.call("POST", "/v1/jobs?dry=1", DELAYED), 422, "invalid_request");
    const doubled = { id: "job_x" };
    assertProblem(await app.call("POST", "/v1/jobs/job_x/cancel", doubled), 422, "invalid_request");
  });

  test("a value given twice is told as that, and not as a wrong one", async () => {
    const { id } = await app.createJob(DELAYED);
    for (const [path, field] of [
      ["/v1/jobs?limit=1&limit=2", "limit"],
      ["/v1/jobs?queue=a&queue=a", "queue"],
      ["/v1/jobs?created_after=2026-01-01T00:00:00Z&created_after=2026-01-01T00:00:00Z", "created_after"],
      [`/v1/jobs/${id}?wait=1s&wait=2s`, "wait"],
    ] as const) {
      const answer = await app.call("GET", path);
      assertProblem(answer, 422, "invalid_request");
      assert.deepEqual(answer.body["errors"], [
        { pointer: `/${field}`, detail: "is given 2 values, and takes only one" },
      ]);
    }
    const method = await app.call("POST", "/v1/jobs", { url, method: ["GET", "PUT", "POST"] });
    assert.equal(method.body["detail"], "method is given 3 values, and takes only one.");
    const one = await app.call("POST", "/v1/jobs", { url, max_attempts: [1] });
    assert.equal(one.body["detail"], "max_attempts has to be a whole number from 1 to 100.");
  });

  test("422 with a code of its own", async () => {
    const create = (fields: object) => app.call("POST", "/v1/jobs", fields);
    assertProblem(await create({ url: "ftp://x/" }), 422, "invalid_url");
    assertProblem(await create({ url, callback_url: "x" }), 422, "invalid_url");
    assertProblem(await create({ url: "ftp://x/", delay: "x" }), 422, "invalid_request");
    assertProblem(await create({ url: "http://169.254.169.254/" }), 422, "blocked_target");
    assertProblem(await create({ url: `http://127.0.0.1:${app.port}/` }), 422, "blocked_target");
    // A header may be called as a field with a code is, and is no such field.
    for (const headers of [{ url: "a\nb" }, { timezone: "€" }, { callback_url: "a\0" }, { cron_expr: "€" }]) {
      assertProblem(await create({ url, headers }), 422, "invalid_request");
      assertProblem(await create({ steps: [{ url, headers }] }), 422, "invalid_request");
    }
    assertProblem(await create({ steps: [{ url: "ftp://x/" }] }), 422, "invalid_url");
    const schedule = (fields: object) => app.call("POST", "/v1/schedules", { url, ...fields });
    assertProblem(await schedule({ cron_expr: "* * * *" }), 422, "invalid_cron");
    assertProblem(await schedule({ cron_expr: "0 0 * * *", timezone: "Mars/X" }), 422, "invalid_timezone");
    const key = { "idempotency-key": "reused" };
    assert.equal((await app.call("POST", "/v1/jobs", DELAYED, key)).status, 201);
    const other = await app.call("POST", "/v1/jobs", { url, delay: "2h" }, key);
    assertProblem(other, 422, "idempotency_key_reused");
  });

  test("batches: all or none, and pointers name the index", async () => {
    const count = async () => (await app.call("GET", "/v1/queues/batch")).body["counts"]?.pending ?? 0;
    const good = { url, delay: "1h", queue: "batch" };
    const answer = await app.call("POST", "/v1/jobs/batch", {
      jobs: [good, { ...good, payload: 1, method: "GET" }, { steps: [{ url: "x" }] }, 7],
    });
    assertProblem(answer, 422, "invalid_request");
    assert.deepEqual(answer.body["errors"].map(({ pointer }: { pointer: string }) => pointer).sort(), [
      "/jobs/1/payload",
      "/jobs/2/steps/0/url",
      "/jobs/3",
    ]);
    const blocked = { ...good, url: "http://169.254.169.254/" };
    const refused = await app.call("POST", "/v1/jobs/batch", { jobs: [good, blocked] });
    assertProblem(refused, 422, "blocked_target");
    assert.equal(refused.body["errors"][0].pointer, "/jobs/1/url");
    assertProblem(await app.call("POST", "/v1/jobs/batch", { jobs: [] }), 422, "invalid_request");
    assert.equal(await count(), 0);
    const made = await app.call("POST", "/v1/jobs/batch", { jobs: [good, good, good] });
    assert.equal(made.status, 201);
    assert.equal(made.body["data"].length, 3);
    assert.equal(await count(), 3);
  });

  test("a batch takes 1,000 jobs and no more", async () => {
    const large = await startTestApp();
    try {
      const jobs = Array.from({ length: 1_000 }, () => DELAYED);
      const made = await large.call("POST", "/v1/jobs/batch", { jobs });
      assert.equal(made.status, 201);
      assert.equal(made.body["data"].length, 1_000);
      const over = await large.call("POST", "/v1/jobs/batch", { jobs: [...jobs, DELAYED] });
      assertProblem(over, 422, "invalid_request");
      assert.equal(over.body["errors"][0].pointer, "/jobs");
    } finally {
      await large.stop();
    }
  });
});
