/** Errors that are the service's own: a defect in it, and its end. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { connect } from "node:net";
import { describe, test } from "node:test";
import { systemClock } from "../../src/base/clock.ts";
import { createLogger } from "../../src/base/log.ts";
import { createApp, listen, STOPPING } from "../../src/http/server.ts";
import * as field from "../../src/operations/fields.ts";
import { operation, type Services } from "../../src/operations/operation.ts";
import { startTestApp } from "../support/app.ts";
import { assertProblem } from "../support/problem.ts";

describe("errors of the service itself", () => {
  const log = createLogger("silent", "json");
  const broken = operation({
    name: "things.break",
    summary: "",
    scope: "read",
    effect: "read",
    input: field.closed({}),
    output: null,
    http: { method: "GET", path: "/v1/things", status: 200 },
    cli: null,
    mcp: null,
    run: () => Promise.reject(new Error("SELECT secret FROM place")),
  });
  const principal = { tenant: { accountId: "a", mode: "test" }, keyId: "k", keyName: "k", scopes: ["read"] };
  const services = {
    store: {
      accounts: { authenticate: () => Promise.resolve(principal) },
      judged: (error: unknown) => error,
    },
    limits: { maxBodyBytes: 1 },
  } as unknown as Services;

  async function call(notReady: string | null, path: string) {
    const parts = {
      operations: [broken],
      services,
      limitRate: () => [],
      clock: systemClock,
      log,
      version: "0",
      metrics: null,
      notReady: () => notReady,
    };
    const listener = await listen(createApp(parts), { host: "127.0.0.1", port: 0 }, systemClock, log);
    const response = await fetch(`http://127.0.0.1:${listener.port}${path}`, {
      headers: { authorization: "Bearer errand_test_0123456789abcdefghij0123456789", connection: "close" },
    });
    const text = await response.text();
    await listener.close();
    return { status: response.status, headers: response.headers, text, body: JSON.parse(text) };
  }

  test("500 internal_error tells nothing of its cause", async () => {
    const answer = await call(null, "/v1/things");
    assertProblem(answer, 500, "internal_error");
    assert.ok(!answer.text.includes("SELECT"));
  });

  test("503 unavailable while shutting down, with Retry-After; livez still answers", async () => {
    const answer = await call(STOPPING, "/v1/things");
    assertProblem(answer, 503, "unavailable");
    assert.ok(Number(answer.headers.get("retry-after")) > 0);
    assert.equal((await call(STOPPING, "/livez")).status, 200);
    assert.equal((await call("the disk is full", "/readyz")).status, 503);
  });
});

test("a stop does not wait for a connection that never said anything, but for one that is asking", async () => {
  const app = await startTestApp();
  const [silent, asking] = [connect(app.port, "127.0.0.1"), connect(app.port, "127.0.0.1")];
  const silentClosed = once(silent, "close");
  silent.on("error", () => {});
  await Promise.all([once(silent, "connect"), once(asking, "connect")]);
  let answer = "";
  asking.on("data", (chunk) => (answer += String(chunk)));
  asking.write("GET /livez HTTP/1.1\r\nhost: errand\r\n\r\nGET /livez HTTP/1.1\r\n");
  await once(asking, "data");

  const stopped = app.stop();
  silent.resume();
  await silentClosed;
  assert.equal(asking.closed, false);
  asking.write("host: errand\r\nconnection: close\r\n\r\n");
  await once(asking, "close");
  assert.equal(answer.match(/HTTP\/1\.1 200/g)?.length, 2);
  await stopped;
});
