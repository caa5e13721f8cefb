/** Requests that Node's parser or the framework refuses before any route: answered as every other error. */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { startTestApp, type TestApp } from "../support/app.ts";
import { rawRequest } from "../support/raw-request.ts";

describe("malformed requests", () => {
  let app: TestApp;
  before(async () => {
    app = await startTestApp();
  });
  after(() => app.stop());

  const auth = `Authorization: Bearer errand_test_0123456789abcdefghij0123456789\r\n`;
  const TABLE: readonly [what: string, bytes: string, status: number, code: string][] = [
    ["not HTTP", "hello\r\n\r\n", 400, "malformed_request"],
    [
      "a control character in a header",
      "GET /livez HTTP/1.1\r\nHost: a\r\nX-A: \x01\r\n\r\n",
      400,
      "malformed_request",
    ],
    [
      "headers over 16 KiB",
      `GET /livez HTTP/1.1\r\nHost: a\r\nX-A: ${"a".repeat(17_000)}\r\n\r\n`,
      431,
      "headers_too_large",
    ],
    ["no Host", "GET /livez HTTP/1.1\r\n\r\n", 400, "malformed_request"],
    ["a Host that is none", "GET /livez HTTP/1.1\r\nHost: a b\r\n\r\n", 400, "malformed_request"],
    ["a target that is no path", "GET livez HTTP/1.1\r\nHost: a\r\n\r\n", 400, "malformed_request"],
    [
      "two lengths",
      `POST /v1/jobs HTTP/1.1\r\nHost: a\r\n${auth}Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}`,
      400,
      "malformed_request",
    ],
    [
      "a length beside chunks",
      `POST /v1/jobs HTTP/1.1\r\nHost: a\r\n${auth}Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
      400,
      "malformed_request",
    ],
    ["a method without routes", "TRACE /v1/jobs HTTP/1.1\r\nHost: a\r\n\r\n", 405, "method_not_allowed"],
  ];
  for (const [what, bytes, status, code] of TABLE) {
    test(`${what} → ${status} ${code}`, async () => {
      const answer = await rawRequest(app.port, bytes);
      assert.equal(answer.status, status);
      assert.equal(answer.headers.get("content-type"), "application/problem+json");
      const requestId = answer.headers.get("x-request-id");
      assert.match(requestId ?? "", /^req_[0-9a-z]{26}$/);
      const body = JSON.parse(answer.body);
      assert.equal(body.code, code);
      assert.equal(body.status, status);
      assert.equal(body.request_id, requestId);
      assert.equal(typeof body.title, "string");
      assert.match(body.detail, /\.$/);
    });
  }

  test("a chunk that is none ends the connection and nothing else", async () => {
    const head = `POST /v1/jobs HTTP/1.1\r\nHost: a\r\n${auth}Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n`;
    const answer = await rawRequest(app.port, head, "zz\r\n");
    assert.equal(answer.status, 400);
    assert.equal((await app.call("GET", "/livez")).status, 200);
  });

  test("HTTP/1.0 needs no Host, and an expectation that nobody knows is passed over", async () => {
    assert.equal((await rawRequest(app.port, "GET /livez HTTP/1.0\r\n\r\n")).status, 200);
    const expecting = await rawRequest(app.port, "GET /livez HTTP/1.1\r\nHost: a\r\nExpect: tea\r\n\r\n");
    assert.equal(expecting.status, 200);
    assert.ok(expecting.headers.has("x-request-id"));
  });

  test("a well-formed request id is used, another is replaced", async () => {
    for (const id of ["a", "A-Z_0.9", "x".repeat(128)]) {
      const { headers } = await app.call("GET", "/v1/nothing", undefined, { "x-request-id": id });
      assert.equal(headers.get("x-request-id"), id);
    }
    for (const id of ["", "x".repeat(129), "a b", "a/b", "ü"]) {
      const { headers, body } = await app.call("GET", "/v1/nothing", undefined, { "x-request-id": id });
      assert.match(headers.get("x-request-id") ?? "", /^req_/);
      assert.equal(body["request_id"], headers.get("x-request-id"));
    }
  });
});
