/** Jobs from the command line, against a real service and a real target. */
import assert from "node:assert/strict";
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { startTestApp, type TestApp, temporaryFolder } from "../support/app.ts";
import { cliOf, runCli } from "../support/cli.ts";
import { startTarget } from "../support/target.ts";

describe("errand jobs", () => {
  let app: TestApp;
  let errand: ReturnType<typeof cliOf>;
  const folder = temporaryFolder();
  before(async () => {
    app = await startTestApp();
    errand = cliOf(app);
  });
  after(async () => {
    await app.stop();
    rmSync(folder, { recursive: true });
  });

  test("a first-time user on the machine of the service needs no key and no address", async (t) => {
    const target = await startTarget();
    t.after(() => target.close());
    const { code, out, err } = await runCli(
      ["jobs", "create", "--url", target.url, "--payload", `{"a":1.0,"b":9007199254740993}`, "--wait"],
      { env: { ERRAND_URL: app.url, ERRAND_DATA_DIR: app.folder } },
    );
    assert.equal(code, 0, err);
    assert.equal(target.received[0]?.body, `{"a":1.0,"b":9007199254740993}`);
    assert.match(out, /^id +job_\w{26}$/m);
    assert.match(out, /^status +completed$/m);
    assert.match(out, /^payload +\{"a":1\.0,"b":9007199254740993\}$/m);
    assert.match(err, /completed {2}200 in /);
    assert.ok(!(out + err).includes(app.key));
  });

  test("every kind of field comes through", async () => {
    const { code, out, err } = await errand([
      "jobs",
      "create",
      "--url=http://127.0.0.1:9/x",
      "--method=PUT",
      "--delay=1h",
      "--header=x-one: a:b",
      "--headers=authorization:Bearer s3cret",
      "--max-attempts=7",
      "--retry-delays=10s,1m",
      "--no-retry-on=404,4xx",
      "--no-retry-on=501",
      "--tags=a",
      "--tags=b",
      "--requires-approval",
      "--approval-timeout=2d",
      "--queue=mail",
      "--output=json",
    ]);
    assert.equal(code, 0, err);
    const job = JSON.parse(out);
    assert.equal(job.method, "PUT");
    assert.deepEqual(job.headers, { "x-one": "a:b", authorization: "***" });
    assert.equal(job.max_attempts, 7);
    assert.deepEqual(job.retry_delays, ["10s", "1m"]);
    assert.deepEqual(job.no_retry_on, [404, "4xx", 501]);
    assert.deepEqual(job.tags, ["a", "b"]);
    assert.equal(job.status, "awaiting_approval");
    assert.equal(job.queue, "mail");
  });

  test("a list value that holds a comma is said as JSON", async () => {
    const create = ["jobs", "create", "--url", "http://127.0.0.1:9/", "--delay", "1h", "-o", "json"];
    const { out } = await errand([...create, "--tags", `["a,b","c"]`]);
    assert.deepEqual(JSON.parse(out).tags, ["a,b", "c"]);
  });

  test("headers are also an object as the API has it, as it is, from a file, and from stdin; {} is none", async () => {
    const create = ["jobs", "create", "--url", "http://127.0.0.1:9/", "--delay", "1h", "-o", "json"];
    const file = join(folder, "headers.json");
    writeFileSync(file, `{"x-one": "a:b"}`);
    for (const [given, stdin] of [[`{"x-one":"a:b"}`], [`@${file}`], ["-", `{"x-one":"a:b"}`]] as const) {
      const { code, out, err } = await errand([...create, "--headers", given], { stdin: stdin ?? "" });
      assert.equal(code, 0, err);
      assert.deepEqual(JSON.parse(out).headers, { "x-one": "a:b" });
    }
    const schedule = ["--cron-expr", "@daily", "--url", "http://127.0.0.1:9/", "--header", "x-one: 1"];
    const made = await errand(["schedules", "create", ...schedule, "-o", "id"]);
    const cleared = await errand(["schedules", "update", made.out.trim(), "--headers", "{}", "-o", "json"]);
    assert.deepEqual(JSON.parse(cleared.out).headers, {});
    assert.equal((await errand([...create, "--headers", "{nope"])).code, 2);
  });

  test("a payload comes from a file and from stdin, byte for byte", async (t) => {
    const target = await startTarget();
    t.after(() => target.close());
    const file = join(folder, "payload.json");
    writeFileSync(file, `{"b": 1.0,  "a":"é"}\n`);
    const create = ["jobs", "create", "--url", target.url, "--wait", "-o", "id"];
    const fromFile = await errand([...create, "--payload", `@${file}`]);
    assert.equal(fromFile.code, 0, fromFile.err);
    const fromStdin = await errand([...create, "--payload", "-"], { stdin: `[1e2,\n"x"]` });
    assert.equal(fromStdin.code, 0, fromStdin.err);
    assert.deepEqual(
      target.received.map(({ body }) => body),
      [`{"b": 1.0,  "a":"é"}`, `[1e2,\n"x"]`],
    );
  });

  test("a pipeline from a file runs, and its steps are shown", async (t) => {
    const target = await startTarget();
    t.after(() => target.close());
    const steps = JSON.stringify([
      { name: "fetch", url: target.url, payload: { n: 1 } },
      { name: "store", url: target.url },
    ]);
    const { code, out, err } = await errand(["jobs", "create", "--steps", "-", "--wait"], { stdin: steps });
    assert.equal(code, 0, err);
    assert.match(out, /^NAME +STATUS +ATTEMPTS/m);
    assert.match(out, /^store +completed +1 +200/m);
  });

  test("--wait on a job that fails tells its last error and exits 5; wait does so too", async (t) => {
    const target = await startTarget(() => ({ status: 500 }));
    t.after(() => target.close());
    const create = ["jobs", "create", "--url", target.url, "--max-attempts", "2", "--retry-delays", "0s"];
    const created = await errand([...create, "--wait", "-o", "id"]);
    assert.equal(created.code, 5);
    const id = created.out.trim();
    assert.match(id, /^job_\w{26}$/);
    assert.match(created.err, new RegExp(`errand: ${id} failed: The target answered 500. \\(http_status\\)`));

    const waited = await errand(["jobs", "wait", id, "-o", "json"]);
    assert.equal(waited.code, 5);
    assert.equal(JSON.parse(waited.out).status, "failed");
    const attempts = await errand(["jobs", "attempts", id, "-o", "ndjson"]);
    assert.deepEqual(
      attempts.out
        .trim()
        .split("\n")
        .map((line) => JSON.parse(line).response_code),
      [500, 500],
    );
  });

  test("--wait goes on when the service stops or refuses right after the create", async (t) => {
    const job = { id: "job_1", attempts: 1, next_retry_at: null, run_at: null, response_code: 200 };
    const limited = { status: 429, code: "rate_limited", detail: "Too many requests." };
    const service = await startTarget((_, count) => {
      if (count === 1) return { status: 201, body: JSON.stringify({ ...job, status: "pending" }) };
      if (count > 2) return { body: JSON.stringify({ ...job, status: "completed" }) };
      const headers = { "content-type": "application/problem+json" };
      return { status: 429, headers, body: JSON.stringify(limited) };
    });
    t.after(() => service.close());
    const { code, err } = await errand(["jobs", "create", "--url", "http://127.0.0.1:9/", "--wait"], {
      env: { ERRAND_URL: `http://127.0.0.1:${service.port}` },
    });
    assert.equal(code, 0, err);
  });

  test("wait tells each step of a pipeline, also when one looks like the one before", async (t) => {
    const job = { id: "job_1", status: "active", attempts: 1, next_retry_at: null, response_code: 200 };
    const steps = (...states: string[]) => states.map((status, i) => ({ name: `s${i + 1}`, status }));
    const service = await startTarget((_, count) => {
      if (count === 1) return { body: JSON.stringify({ ...job, steps: steps("active", "pending") }) };
      if (count === 2) return { body: JSON.stringify({ ...job, steps: steps("completed", "active") }) };
      return { body: JSON.stringify({ ...job, status: "completed" }) };
    });
    t.after(() => service.close());
    const env = { ERRAND_URL: `http://127.0.0.1:${service.port}` };
    const { err } = await errand(["jobs", "wait", "job_1"], { env });
    assert.match(err, /attempt 1 of s1\n.*attempt 1 of s2\n.*completed/);
  });

  test("wait gives up when it was told to", async () => {
    const { id } = await app.createJob({ url: "http://127.0.0.1:9/", delay: "1h" });
    const { code, err } = await errand(["jobs", "wait", id, "--timeout", "1s"]);
    assert.equal(code, 1);
    assert.match(err, /is still pending after 1 s/);
    assert.match((await errand(["jobs", "wait", id, "--timeout", "0s"])).err, /is still pending after 0 ms/);
  });

  for (const [what, answers] of [
    ["is away", false],
    ["does not answer", true],
  ] as const) {
    test(`wait gives up when it was told to, also while the service ${what}`, {
      timeout: 20_000,
    }, async (t) => {
      const job = { id: "job_1", status: "pending", attempts: 0, next_retry_at: null, run_at: null };
      const service = await startTarget((_, count) =>
        count === 1 ? { body: JSON.stringify(job) } : { wait: new Promise(() => {}) },
      );
      t.after(() => service.close());
      const waiting = errand(["jobs", "wait", "job_1", "--timeout", "2s"], {
        env: { ERRAND_URL: `http://127.0.0.1:${service.port}` },
      });
      await service.request(2);
      if (!answers) await service.close();
      const { code, err } = await waiting;
      assert.equal(code, 1);
      assert.match(err, answers ? /job_1 is still pending after 2 s/ : /nothing answers at .*\n$/);
    });
  }

  test("approve, reject, cancel and retry do what they say", async () => {
    const held = { url: "http://127.0.0.1:9/", requires_approval: true, delay: "1h" };
    const [first, second] = [await app.createJob(held), await app.createJob(held)];
    const approved = await errand(["jobs", "approve", first["id"], "--note", "looks right", "-o", "json"]);
    assert.equal(JSON.parse(approved.out).status, "pending");
    assert.equal(JSON.parse(approved.out).approval_note, "looks right");
    const rejected = await errand(["jobs", "reject", second["id"], "-o", "json"]);
    assert.equal(JSON.parse(rejected.out).status, "cancelled");
    const cancelled = await errand(["jobs", "cancel", first["id"]]);
    assert.match(cancelled.out, /^status +cancelled$/m);
    const again = await errand(["jobs", "cancel", first["id"]]);
    assert.equal(again.code, 1);
    assert.match(again.err, /\(not_cancellable, req_\w{26}\)\n$/);
    const retried = await errand(["jobs", "retry", first["id"], "-o", "json"]);
    assert.equal(JSON.parse(retried.out).status, "pending");
  });

  test("many jobs are created, and cancelled by a filter", async () => {
    const jobs = [1, 2, 3].map((n) => ({
      url: "http://127.0.0.1:9/",
      payload: n,
      delay: "1h",
      tags: ["many"],
    }));
    const created = await errand(["jobs", "create-batch", "--jobs", "-", "-o", "id"], {
      stdin: JSON.stringify(jobs),
    });
    assert.equal(created.out.trim().split("\n").length, 3, created.err);
    const cancelled = await errand(["jobs", "cancel-all", "--tag", "many", "-o", "json"]);
    assert.deepEqual(JSON.parse(cancelled.out), { count: 3 });
  });

  test("a repeat under the same idempotency key is told", async () => {
    const create = ["jobs", "create", "--url", "http://127.0.0.1:9/", "--delay", "1h", "-o", "id"];
    const first = await errand([...create, "--idempotency-key", "k1"]);
    const second = await errand([...create, "--idempotency-key", "k1"]);
    assert.equal(first.out, second.out);
    assert.match(second.err, /nothing new was made/);
  });

  test("lists are filtered, paged and empty", async () => {
    for (let n = 0; n < 3; n++)
      await app.createJob({ url: "http://127.0.0.1:9/", delay: "1h", queue: "paged" });
    const first = await errand(["jobs", "list", "--queue", "paged", "--limit", "2", "-o", "id"]);
    assert.equal(first.out.trim().split("\n").length, 2);
    const cursor = /--cursor (\S+)/.exec(first.err)?.[1] ?? "";
    const rest = await errand(["jobs", "list", "--queue", "paged", "--cursor", cursor, "-o", "id"]);
    assert.equal(rest.out.trim().split("\n").length, 1);
    const none = await errand(["jobs", "list", "--queue", "paged", "--status", "failed,completed"]);
    assert.deepEqual(none, { code: 0, out: "", err: "(none)\n" });
  });
});
