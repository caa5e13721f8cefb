/** The egress rules as users meet them: what a create refuses, and what a delivery refuses, once and for good. */
import assert from "node:assert/strict";
import { describe, type TestContext, test } from "node:test";
import { LOOPBACK_HOSTS } from "../delivery/loopback-hosts.ts";
import { rawTarget } from "../delivery/raw-target.ts";
import { type Answer, startTestApp, type TestApp, type TestAppOptions } from "../support/app.ts";
import { startTarget } from "../support/target.ts";

type Body = Record<string, any>;

async function started(t: TestContext, options: TestAppOptions = {}): Promise<TestApp> {
  const app = await startTestApp(options);
  t.after(() => app.stop());
  return app;
}

function assertBlocked(answer: Answer<any>, pointer: string, what: string): void {
  assert.equal(answer.status, 422, `${what}: ${answer.text}`);
  assert.equal(answer.body.code, "blocked_target", `${what}: ${answer.text}`);
  assert.deepEqual(
    answer.body.errors.map((fault: Body) => fault["pointer"]),
    [pointer],
    what,
  );
  assert.match(answer.body.detail, /ERRAND_EGRESS_ALLOW/);
}

/** Every call that takes a URL to call, with the pointer to it. */
const CALLS: readonly [
  what: string,
  method: string,
  path: string,
  body: (url: string) => Body,
  at: string,
][] = [
  ["a job", "POST", "/v1/jobs", (url) => ({ url }), "/url"],
  ["a callback", "POST", "/v1/jobs", (url) => ({ url: OPEN, callback_url: url }), "/callback_url"],
  ["a step", "POST", "/v1/jobs", (url) => ({ steps: [{ url: OPEN }, { url }] }), "/steps/1/url"],
  ["a batch", "POST", "/v1/jobs/batch", (url) => ({ jobs: [{ url: OPEN }, { url }] }), "/jobs/1/url"],
  ["a schedule", "POST", "/v1/schedules", (url) => ({ cron_expr: "0 0 1 1 *", url }), "/url"],
  [
    "a schedule's callback",
    "POST",
    "/v1/schedules",
    (url) => ({ cron_expr: "0 0 1 1 *", url: OPEN, callback_url: url }),
    "/callback_url",
  ],
  [
    "a schedule's step",
    "POST",
    "/v1/schedules",
    (url) => ({ cron_expr: "0 0 1 1 *", steps: [{ url }] }),
    "/steps/0/url",
  ],
  [
    "a schedule by name",
    "PUT",
    "/v1/schedules/by-name/a",
    (url) => ({ cron_expr: "0 0 1 1 *", url }),
    "/url",
  ],
];
const OPEN = "http://192.0.2.1/";

describe("what the URL alone shows", () => {
  test("metadata, link-local, multicast, unspecified and Errand's own addresses are refused wherever a URL is taken", async (t) => {
    const app = await started(t);
    const hosts = [
      "169.254.169.254",
      "[fd00:ec2::254]",
      "[::ffff:169.254.169.254]",
      "[64:ff9b::a9fe:a9fe]",
      "[2002:a9fe:a9fe::]",
      "2852039166",
      "169.254.7.7",
      "[fe80::1]",
      "224.0.0.1",
      "[ff02::1]",
      "0.0.0.0",
      "0",
      "[::]",
      `127.0.0.1:${app.port}`,
      `localhost:${app.port}`,
      `[::1]:${app.port}`,
      `127.1:${app.port}`,
    ];
    for (const [what, method, path, body, at] of CALLS) {
      for (const host of hosts)
        assertBlocked(await app.call(method, path, body(`http://${host}/`)), at, `${what} to ${host}`);
    }
    const { body: schedule } = await app.call("POST", "/v1/schedules", { cron_expr: "0 0 1 1 *", url: OPEN });
    for (const fields of [{ url: "http://169.254.169.254/" }, { callback_url: "http://169.254.169.254/" }]) {
      const answer = await app.call("PATCH", `/v1/schedules/${schedule["id"]}`, fields);
      assertBlocked(answer, `/${Object.keys(fields)[0]}`, "a change of a schedule");
    }
    assert.deepEqual((await app.call("GET", "/v1/jobs")).body["data"], []);
  });

  test("ERRAND_EGRESS_DENY=private: no spelling of a private address is taken", async (t) => {
    const app = await started(t, { config: { egressDeny: ["private"] } });
    const inner =
      "10.1.2.3 172.16.0.1 192.168.1.1 100.64.0.1 [fd12::1] [::ffff:10.0.0.1] [64:ff9b::a00:1]".split(" ");
    for (const host of [...LOOPBACK_HOSTS, "localhost", "localhost.", "a.localhost", ...inner]) {
      const answer = await app.call("POST", "/v1/jobs", { url: `http://${host}:9/`, delay: "1h" });
      assert.equal(answer.status, 422, host);
      const code = host.includes("@") ? "invalid_url" : "blocked_target";
      assert.equal(answer.body["code"], code, `${host}: ${answer.text}`);
    }
    for (const url of ["http:\\\\127.0.0.1\\", "http://good.example\\@127.0.0.1/", "http:127.0.0.1/"])
      assert.equal((await app.call("POST", "/v1/jobs", { url })).body["code"], "invalid_url", url);
    await app.createJob({ url: OPEN, delay: "1h" });
  });

  test("ERRAND_EGRESS_ALLOW beats everything, for what it names", async (t) => {
    const target = await startTarget();
    t.after(() => target.close());
    const app = await started(t, { config: { egressDeny: ["private"], egressAllow: ["127.0.0.1"] } });
    const { id } = await app.createJob({ url: target.url });
    assert.equal((await app.ended(id))["status"], "completed");
    const refused = await app.call("POST", "/v1/jobs", { url: `http://127.0.0.2:${target.port}/` });
    assertBlocked(refused, "/url", "an address beside it");
  });
});

describe("what only the delivery shows", () => {
  /** Jobs made where private networks were open, on a service where they no longer are. */
  async function closedIn(t: TestContext, make: (app: TestApp) => Promise<string>) {
    const open = await startTestApp();
    const id = await make(open);
    await open.stop({ keep: true });
    const app = await started(t, { folder: open.folder, config: { egressDeny: ["private"] } });
    return { app, id };
  }

  const HELD = { requires_approval: true, max_attempts: 5, retry_delays: ["0s"] };

  test("a job fails at once and is not tried again", async (t) => {
    const target = await rawTarget(t, () => {});
    const { app, id } = await closedIn(t, async (open) => {
      const job = await open.createJob({ url: target.url, ...HELD });
      return job["id"];
    });
    await app.call("POST", `/v1/jobs/${id}/approve`);
    const job = await app.ended(id);
    assert.equal(job["status"], "failed");
    assert.equal(job["attempts"], 1);
    assert.equal(job["last_error_code"], "blocked_target");
    assert.match(job["last_error"], /127\.0\.0\.1.*ERRAND_EGRESS_DENY/);
    const attempts = await app.call("GET", `/v1/jobs/${id}/attempts`);
    assert.match(attempts.body["data"][0].decision, /^Failed without a retry/);
    assert.equal(target.connections.length, 0);
  });

  test("so does a step, and its pipeline with it", async (t) => {
    const target = await rawTarget(t, () => {});
    const { app, id } = await closedIn(t, async (open) => {
      const job = await open.createJob({ steps: [{ url: target.url, ...HELD }, { url: OPEN }] });
      return job["id"];
    });
    await app.call("POST", `/v1/jobs/${id}/approve`);
    const job = await app.ended(id);
    assert.equal(job["status"], "failed");
    assert.equal(job["last_error_code"], "blocked_target");
    assert.deepEqual(
      job["steps"].map((step: Body) => [step["status"], step["attempts"]]),
      [
        ["failed", 1],
        ["pending", 0],
      ],
    );
    assert.equal(target.connections.length, 0);
  });

  test("so does a callback", async (t) => {
    const target = await rawTarget(t, () => {});
    const { app, id } = await closedIn(t, async (open) => {
      const job = await open.createJob({ url: OPEN, callback_url: target.url, ...HELD });
      return job["id"];
    });
    await app.call("POST", `/v1/jobs/${id}/cancel`);
    let { body } = await app.call("GET", `/v1/jobs/${id}`);
    while (body["callback"]?.status !== "failed") ({ body } = await app.call("GET", `/v1/jobs/${id}`));
    assert.equal(body["callback"].attempts, 1);
    assert.match(body["callback"].last_error, /127\.0\.0\.1/);
    assert.equal(target.connections.length, 0);
  });

  test("so does what a schedule makes", async (t) => {
    const target = await rawTarget(t, () => {});
    const { app, id } = await closedIn(t, async (open) => {
      const fields = { cron_expr: "0 0 1 1 *", url: target.url, max_attempts: 5 };
      return (await open.call("POST", "/v1/schedules", fields)).body["id"];
    });
    const made = await app.call("POST", `/v1/schedules/${id}/trigger`);
    const job = await app.ended(made.body["id"]);
    assert.deepEqual(
      [job["status"], job["attempts"], job["last_error_code"]],
      ["failed", 1, "blocked_target"],
    );
    assert.equal(target.connections.length, 0);
  });
});
