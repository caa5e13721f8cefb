/** What a browser is kept from: reading across origins, caching, sniffing, framing, and running what a target has sent. */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { startTestApp, type TestApp } from "../support/app.ts";
import { readEvents } from "../support/events.ts";
import { rawRequest } from "../support/raw-request.ts";
import { startTarget } from "../support/target.ts";

const ORIGIN = { origin: "https://evil.example" };

function assertSafe(headers: { get(name: string): string | null | undefined }, what: string): void {
  assert.equal(headers.get("cache-control"), "no-store", what);
  assert.equal(headers.get("x-content-type-options"), "nosniff", what);
  assert.equal(headers.get("referrer-policy"), "no-referrer", what);
  const policy = headers.get("content-security-policy") ?? "";
  assert.match(policy, /default-src 'none'/, what);
  assert.match(policy, /frame-ancestors 'none'/, what);
  assert.doesNotMatch(policy, /unsafe|\*/, what);
  for (const name of [
    "access-control-allow-origin",
    "access-control-allow-credentials",
    "access-control-allow-methods",
  ])
    assert.ok(!headers.get(name), `${what}: ${name}`);
  assert.ok(!headers.get("strict-transport-security"), what);
  assert.ok(headers.get("x-request-id"), what);
}

describe("browsers", () => {
  let app: TestApp;
  before(async () => {
    app = await startTestApp();
  });
  after(() => app.stop());

  test("every answer, good or bad, with a key or without, says the same to a page of another origin", async () => {
    const calls: readonly [method: string, path: string, body?: unknown][] = [
      ["GET", "/v1/jobs"],
      ["HEAD", "/v1/jobs"],
      ["GET", "/v1/jobs/job_x"],
      ["POST", "/v1/jobs", { url: "http://127.0.0.1:9/", delay: "1h" }],
      ["POST", "/v1/jobs", { url: "x" }],
      ["POST", "/v1/jobs", "{"],
      ["GET", "/v1/signing-secrets"],
      ["GET", "/v1/account"],
      ["GET", "/livez"],
      ["GET", "/readyz"],
      ["GET", "/metrics"],
      ["GET", "/openapi.json"],
      ["GET", "/docs"],
      ["GET", "/"],
      ["GET", "/mcp"],
      ["GET", "/nothing"],
    ];
    for (const [method, path, body] of calls) {
      for (const more of [ORIGIN, { ...ORIGIN, authorization: "" }]) {
        const { headers } = await app.call(method, path, body, more);
        assertSafe(headers, `${method} ${path}`);
      }
    }
    const events = await readEvents(app);
    assertSafe({ get: (name) => events.headers[name]?.toString() ?? null }, "events");
    events.close();
  });

  test("what Node's parser refuses, too", async () => {
    for (const bytes of [
      "hello\r\n\r\n",
      "GET livez HTTP/1.1\r\nHost: a\r\n\r\n",
      "GET /livez HTTP/1.1\r\n\r\n",
      `GET /livez HTTP/1.1\r\nHost: a\r\nX: ${"a".repeat(20_000)}\r\n\r\n`,
    ])
      assertSafe((await rawRequest(app.port, bytes)).headers, bytes.slice(0, 40));
  });

  test("a preflight allows nothing", async () => {
    for (const path of ["/v1/jobs", "/v1/jobs/job_x", "/mcp", "/livez", "/"]) {
      const { status, headers } = await app.call("OPTIONS", path, undefined, {
        ...ORIGIN,
        authorization: "",
        "access-control-request-method": "POST",
        "access-control-request-headers": "authorization, content-type",
      });
      assert.ok(status >= 400, `${path} → ${status}`);
      assertSafe(headers, path);
    }
  });

  test("what a page can send without asking creates nothing", async () => {
    for (const type of [
      "text/plain",
      "application/x-www-form-urlencoded",
      "multipart/form-data; boundary=a",
    ]) {
      const body = JSON.stringify({ url: "http://127.0.0.1:9/" });
      const { status } = await app.call("POST", "/v1/jobs", body, { ...ORIGIN, "content-type": type });
      assert.equal(status, 415, type);
    }
    const query = await app.call("GET", `/v1/jobs?access_token=${app.key}`, undefined, { authorization: "" });
    assert.equal(query.status, 401);
    const cookie = await app.call("GET", "/v1/jobs", undefined, {
      authorization: "",
      cookie: `key=${app.key}`,
    });
    assert.equal(cookie.status, 401);
  });

  test("a stored response is data, whatever it says it is and whatever is asked for", async (t) => {
    const page = "<!doctype html><script>alert(1)</script>";
    const target = await startTarget(() => ({
      headers: {
        "content-type": "text/html",
        "content-disposition": "inline",
        refresh: "0; url=//evil.example",
      },
      body: page,
    }));
    t.after(() => target.close());
    const { id } = await app.createJob({ url: target.url, payload: page, tags: ["<b>"] });
    await app.ended(id);
    for (const path of [`/v1/jobs/${id}`, `/v1/jobs/${id}/attempts`, "/v1/jobs"]) {
      const answer = await app.call("GET", path, undefined, { accept: "text/html" });
      assert.equal(answer.headers.get("content-type"), "application/json");
      for (const name of ["refresh", "content-disposition"]) assert.ok(!answer.headers.has(name), name);
      assertSafe(answer.headers, path);
    }
    const missing = await app.call("GET", `/v1/jobs/${encodeURIComponent(page)}`, undefined, {
      accept: "text/html",
    });
    assert.equal(missing.headers.get("content-type"), "application/problem+json");
  });
});
