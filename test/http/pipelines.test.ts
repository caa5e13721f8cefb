/** Pipelines over real HTTP: order, bodies, retries, views, and the faults that a create tells. */
import assert from "node:assert/strict";
import { after, before, describe, type TestContext, test } from "node:test";
import { Webhook } from "standardwebhooks";
import { startTestApp, type TestApp } from "../support/app.ts";
import { type Received, type Scripted, startTarget } from "../support/target.ts";

let app: TestApp;
before(async () => {
  app = await startTestApp();
});
after(() => app.stop());

/** A target that answers by path: `/a` as `answers.a` says. What it got is in `got.a`, in order. */
async function stage(
  t: TestContext,
  answers: Record<string, Scripted | ((received: Received, count: number) => Scripted | Promise<Scripted>)>,
) {
  const got: Record<string, Received[]> = {};
  const target = await startTarget((received) => {
    const name = received.path.slice(1);
    const list = (got[name] ??= []);
    list.push(received);
    const answer = answers[name] ?? {};
    return typeof answer === "function" ? answer(received, list.length) : answer;
  });
  t.after(() => target.close());
  const at = (name: string) => target.url.replace("/hook", `/${name}`);
  return { target, at, got };
}

const read = async (id: string) => (await app.call("GET", `/v1/jobs/${id}`)).body;

describe("a pipeline", () => {
  test("runs its steps in order, each fed by the one before, as one job", async (t) => {
    const { target, at, got } = await stage(t, {
      a: { body: `{"n":9007199254740993, "x":1.0}` },
      b: { body: "plain", headers: { "content-type": "text/plain; charset=utf-8" } },
      c: { status: 201, body: `{"done":true}`, headers: { "x-last": "yes" } },
    });
    const body = `{"payload":{"in":1.0},"steps":[{"name":"a","url":"${at("a")}"},{"url":"${at("b")}"},{"name":"c","url":"${at("c")}","method":"PUT","headers":{"x-mine":"1"}}]}`;
    const created = await app.call("POST", "/v1/jobs", body);
    assert.equal(created.status, 201, created.text);
    assert.deepEqual([created.body.url, created.body.method], [null, null]);
    const job = await app.ended(created.body.id);
    assert.equal(job.status, "completed", job.last_error);

    assert.deepEqual(
      target.received.map(({ method, path, body: sent, headers }) => [
        method,
        path,
        sent,
        headers["content-type"],
        headers["webhook-id"],
        headers["errand-job-id"],
        headers["errand-attempt"],
      ]),
      [
        ["POST", "/a", `{"in":1.0}`, "application/json", `${job.id}-1`, job.id, "1"],
        ["POST", "/b", `{"n":9007199254740993, "x":1.0}`, "application/json", `${job.id}-2`, job.id, "1"],
        ["PUT", "/c", "plain", "text/plain; charset=utf-8", `${job.id}-3`, job.id, "1"],
      ],
    );
    assert.equal(got["c"]?.[0]?.headers["x-mine"], "1");

    const { body: secrets } = await app.call("GET", "/v1/signing-secrets");
    const webhook = new Webhook(secrets.data[0].secret);
    for (const { body: sent, headers } of target.received) {
      const at = new Date(Number(headers["webhook-timestamp"]) * 1_000);
      assert.equal(headers["webhook-signature"], webhook.sign(String(headers["webhook-id"]), at, sent));
    }

    // The job's own response is the last step's.
    assert.equal(job.response_code, 201);
    assert.deepEqual(job.response_body, { done: true });
    assert.equal(job.response_headers["x-last"], "yes");
    assert.equal(job.attempts, 1);
    assert.equal(job.retries_remaining, 0);
    assert.deepEqual(
      job.steps.map((step: Record<string, unknown>) => [
        step.name,
        step.status,
        step.attempts,
        step.response_code,
        step.response_body,
        step.last_error,
      ]),
      [
        ["a", "completed", 1, 200, { n: Number("9007199254740993"), x: 1 }, null],
        ["step_2", "completed", 1, 200, "plain", null],
        ["c", "completed", 1, 201, { done: true }, null],
      ],
    );
    for (const step of job.steps) assert.equal(typeof step.duration_ms, "number");
    const raw = await app.call("GET", `/v1/jobs/${job.id}`);
    assert.match(raw.text, /"response_body":\{"n":9007199254740993, "x":1\.0\}/);

    const attempts = (await app.call("GET", `/v1/jobs/${job.id}/attempts`)).body.data;
    assert.deepEqual(
      attempts.map((one: Record<string, unknown>) => [one.step, one.number, one.decision]),
      [
        ["a", 1, "Done; step step_2 is next."],
        ["step_2", 1, "Done; step c is next."],
        ["c", 1, "Completed: the target answered with success."],
      ],
    );
    const listed = (await app.call("GET", "/v1/jobs")).body.data;
    assert.equal(listed.filter((one: { id: string }) => one.id.startsWith(job.id)).length, 1);
  });

  test("references bring parts of any earlier response and of the input into a payload", async (t) => {
    const { at, got } = await stage(t, {
      a: { body: `{"user":{"id":12345678901234567890,"a/b":"\\u00e9"}}` },
      b: { body: `[1,{"$from":"input#/secret"}]` },
    });
    const body = `{"payload":{"to":"me","secret":"s"},"steps":[
      {"name":"a","url":"${at("a")}"},{"name":"b","url":"${at("b")}"},
      {"name":"c","url":"${at("c")}","payload":{ "z":1.0, "id":{"$from":"a#/user/id"}, "key":[{"$from":"a#/user/a~1b"}], "list":{"$from":"b#"}, "to":{"$from":"input#/to"} }}]}`;
    const { body: created, status, text } = await app.call("POST", "/v1/jobs", body);
    assert.equal(status, 201, text);
    assert.equal((await app.ended(created.id)).status, "completed");
    assert.equal(
      got["c"]?.[0]?.body,
      `{ "z":1.0, "id":12345678901234567890, "key":["\\u00e9"], "list":[1,{"$from":"input#/secret"}], "to":"me" }`,
    );
    // What the job shows is the payload as it was given.
    assert.match((await app.call("GET", `/v1/jobs/${created.id}`)).text, /"id":\{"\$from":"a#\/user\/id"\}/);
  });

  test("binary, empty and large responses pass through as bytes", async (t) => {
    const bytes = Buffer.from(Array.from({ length: 1024 * 1024 }, (_, i) => (i * 7) % 256));
    const { at, got } = await stage(t, {
      a: { body: bytes, headers: { "content-type": "application/x-thing", "content-encoding": "x-odd" } },
      b: { status: 204 },
      c: { body: "x" },
    });
    const { id } = await app.createJob({
      steps: [
        { url: at("a"), method: "GET" },
        { url: at("b") },
        { url: at("c") },
        { url: at("d"), method: "GET" },
      ],
    });
    const job = await app.ended(id);
    assert.equal(job.status, "completed", job.last_error);
    assert.equal(got["a"]?.[0]?.bytes.length, 0);
    assert.equal(got["a"]?.[0]?.headers["content-type"], undefined);
    assert.ok(got["b"]?.[0]?.bytes.equals(bytes));
    assert.equal(got["b"]?.[0]?.headers["content-type"], "application/x-thing");
    assert.equal(got["b"]?.[0]?.headers["content-encoding"], "x-odd");
    assert.equal(got["c"]?.[0]?.bytes.length, 0);
    assert.equal(got["c"]?.[0]?.headers["content-type"], undefined);
    assert.equal(got["d"]?.[0]?.bytes.length, 0);
    assert.equal(job.steps[0].response_body_encoding, "base64");
    assert.equal(job.steps[0].response_body, bytes.toString("base64"));
  });

  test("a long text that is cut within a character is text all the same", async (t) => {
    const { at } = await stage(t, { a: { body: `x${"é".repeat(600_000)}` } });
    const { id } = await app.createJob({ steps: [{ url: at("a") }] });
    const job = await app.ended(id);
    assert.equal(job.status, "completed");
    assert.equal(job.response_truncated, true);
    assert.equal(job.response_body_encoding, undefined);
    assert.equal(job.response_body, `x${"é".repeat((1024 * 1024 - 2) / 2)}`);
  });

  test("a reference that leads nowhere fails its step by name, without a retry", async (t) => {
    const { at, got } = await stage(t, {
      a: { body: `{"user":{}}` },
      html: { body: "<html>", headers: { "content-type": "text/html" } },
      long: { body: `"${"x".repeat(1024 * 1024)}"` },
    });
    const run = async (first: string, payload: unknown) => {
      const steps = [
        { name: "first", url: at(first) },
        { name: "second", url: at("never"), ...(payload === null ? {} : { payload }) },
      ];
      const { id } = await app.createJob({ payload: {}, steps });
      const job = await app.ended(id);
      assert.deepEqual(
        [job.status, job.last_error_code, job.attempts, job.retries_remaining],
        ["failed", "unresolved_reference", 1, 0],
      );
      assert.deepEqual(
        job.steps.map((step: Record<string, unknown>) => step.status),
        ["completed", "failed"],
      );
      assert.equal(job.steps[1].last_error, job.last_error);
      const attempts = (await app.call("GET", `/v1/jobs/${id}/attempts`)).body.data;
      assert.equal(attempts.length, 2);
      assert.equal(attempts[1].error_code, "unresolved_reference");
      assert.match(attempts[1].decision, /^Failed without a retry: unresolved_reference is never retried\. /);
      return job.last_error;
    };
    assert.equal(
      await run("a", { id: { $from: "first#/user/id" } }),
      `{"$from":"first#/user/id"} finds nothing in the response of step first.`,
    );
    assert.match(await run("html", { $from: "first#" }), /the response of step first is not JSON\.$/);
    assert.match(
      await run("long", [{ $from: "first#" }]),
      /^\{"\$from":"first#"\} cannot be followed: .* longer than the 1 MiB/,
    );
    assert.match(await run("long", null), /^The body of this step is the response of step first, which was/);
    assert.match(await run("a", { $from: "input#/x" }), /finds nothing in the pipeline's input\.$/);
    assert.equal(got["never"], undefined);
  });

  test("shows where it stands while it runs, and what failed; retry goes on there", async (t) => {
    let broken = true;
    const { at, got } = await stage(t, {
      a: { body: `{"v":1}` },
      b: () => (broken ? { status: 500, body: "oh" } : { body: `{"v":2}` }),
    });
    const { id } = await app.createJob({
      max_attempts: 2,
      retry_delays: ["0s"],
      steps: [
        { name: "a", url: at("a"), max_attempts: 5 },
        { name: "b", url: at("b") },
        { name: "c", url: at("c"), payload: [{ $from: "a#/v" }, { $from: "b#/v" }] },
      ],
    });
    const failed = await app.ended(id);
    assert.equal(failed.status, "failed");
    assert.deepEqual(
      failed.steps.map((step: Record<string, unknown>) => [
        step.name,
        step.status,
        step.attempts,
        step.max_attempts,
      ]),
      [
        ["a", "completed", 1, 5],
        ["b", "failed", 2, 2],
        ["c", "pending", 0, 2],
      ],
    );
    assert.deepEqual([failed.attempts, failed.retries_remaining, failed.response_body], [2, 0, "oh"]);
    assert.deepEqual(failed.actions, ["retry"]);

    const again = (await app.call("POST", `/v1/jobs/${id}/retry`)).body;
    assert.deepEqual([again.status, again.attempts, again.retries_remaining], ["pending", 2, 1]);
    const failedAgain = await app.ended(id);
    assert.deepEqual([failedAgain.status, failedAgain.attempts], ["failed", 4]);

    broken = false;
    await app.call("POST", `/v1/jobs/${id}/retry`);
    const done = await app.ended(id);
    assert.equal(done.status, "completed");
    assert.equal(got["a"]?.length, 1);
    assert.equal(got["c"]?.[0]?.body, "[1,2]");
    assert.deepEqual(
      got["b"]?.map(({ headers }) => [headers["webhook-id"], headers["errand-attempt"]]),
      [1, 2, 3, 4, 5].map((n) => [`${id}-2`, String(n)]),
    );
    const attempts = (await app.call("GET", `/v1/jobs/${id}/attempts`)).body.data;
    assert.deepEqual(
      attempts.map((one: Record<string, unknown>) => `${String(one.step)} ${String(one.number)}`),
      ["a 1", "b 1", "b 2", "b 3", "b 4", "b 5", "c 1"],
    );
  });

  test("can be cancelled between its steps", async (t) => {
    const { at, target } = await stage(t, {});
    const { id } = await app.createJob({
      steps: [
        { name: "a", url: at("a") },
        { name: "b", url: at("b"), delay: "1h" },
      ],
    });
    await target.request(1);
    // The outcome is stored a moment after the target has answered: an active job cannot be cancelled.
    let cancelled = await app.call("POST", `/v1/jobs/${id}/cancel`);
    while (cancelled.status === 409) cancelled = await app.call("POST", `/v1/jobs/${id}/cancel`);
    assert.equal(cancelled.body.status, "cancelled");
    assert.deepEqual(
      cancelled.body.steps.map((step: Record<string, unknown>) => step.status),
      ["completed", "cancelled"],
    );
    assert.equal(cancelled.body.steps[0].response_code, 200);
    assert.deepEqual([cancelled.body.response_code, cancelled.body.response_body], [null, null]);
    assert.equal(target.received.length, 1);
    await app.call("POST", `/v1/jobs/${id}/retry`);
    assert.equal((await app.ended(id)).status, "completed");
    assert.deepEqual(
      target.received.map(({ path }) => path),
      ["/a", "/b"],
    );
  });

  test("takes dedupe_key, tags and lists as one job, found by the URL of any step", async (t) => {
    const { at } = await stage(t, {});
    const fields = {
      dedupe_key: "pipe-1",
      tags: ["piped"],
      steps: [{ url: at("a") }, { url: at("needle") }],
    };
    const { id } = await app.createJob(fields);
    const second = await app.call("POST", "/v1/jobs", fields);
    assert.deepEqual([second.status, second.body.id, second.body.deduplicated], [200, id, true]);
    await app.ended(id);
    for (const filter of ["tag=piped", "url_contains=needle"]) {
      const { data } = (await app.call("GET", `/v1/jobs?${filter}`)).body;
      assert.deepEqual(
        data.map((one: { id: string }) => one.id),
        [id],
      );
    }
  });
});

describe("what a create tells of a pipeline that cannot be", () => {
  const url = "http://127.0.0.1:9/";
  const errors = async (body: unknown, path = "/v1/jobs") => {
    const answer = await app.call("POST", path, body);
    assert.equal(answer.status, 422, answer.text);
    assert.equal(answer.body.code, "invalid_request");
    return answer.body.errors.map((error: { pointer: string; detail: string }) => [
      error.pointer,
      error.detail,
    ]);
  };
  const badSteps = [
    { name: "a", url },
    { url, payload: { a: [{ $from: "b#/x" }], "c/d": { $from: "step_2#/x" } } },
    { name: "b", url, payload: { $from: "nope#/x" } },
    {
      name: "c",
      url,
      payload: [{ $from: "a#x" }, { $from: "a" }, { $from: "a#/ok" }, { $from: "input#/~" }],
    },
  ];
  const places = [
    "/steps/1/payload/a/0/$from",
    "/steps/1/payload/c~1d/$from",
    "/steps/2/payload/$from",
    "/steps/3/payload/0/$from",
    "/steps/3/payload/1/$from",
    "/steps/3/payload/3/$from",
  ];

  test("references: unknown, later or own steps and malformed pointers, each with its place", async () => {
    const found = await errors({ steps: badSteps });
    assert.deepEqual(
      found.map(([pointer]: string[]) => pointer),
      places,
    );
    assert.match(found[0][1], /names step b, which does not come before this one/);
    assert.match(found[1][1], /names step step_2, which does not come before this one/);
    assert.match(found[2][1], /names "nope", which is no step of this job/);
  });

  test("the same in a batch and in a schedule", async () => {
    const batch = await errors({ jobs: [{ url }, { steps: badSteps }] }, "/v1/jobs/batch");
    assert.deepEqual(
      batch.map(([pointer]: string[]) => pointer),
      places.map((place) => `/jobs/1${place}`),
    );
    const schedule = await errors({ cron_expr: "0 9 * * 1", steps: badSteps }, "/v1/schedules");
    assert.deepEqual(
      schedule.map(([pointer]: string[]) => pointer),
      places,
    );
  });

  test("names, numbers of steps, and fields that cannot stand beside steps", async () => {
    assert.deepEqual(
      (await errors({ url, method: "GET", headers: {}, steps: [{ url }] })).map(
        ([pointer]: string[]) => pointer,
      ),
      ["/url", "/method", "/headers"],
    );
    assert.deepEqual(await errors({ steps: [] }), [["/steps", "has to have 1 to 20 steps"]]);
    assert.deepEqual(await errors({ steps: Array.from({ length: 21 }, () => ({ url })) }), [
      ["/steps", "has to have 1 to 20 steps"],
    ]);
    assert.deepEqual(await errors({ steps: [{ url, name: "step_2" }, { url }] }), [
      ["/steps/1/name", "is the name of an earlier step; names are unique"],
    ]);
    assert.deepEqual(
      await errors({
        steps: [
          { url, name: "a#b" },
          { url, name: "input" },
        ],
      }),
      [
        ["/steps/0/name", "must not contain #, which ends the name in a reference"],
        ["/steps/1/name", "cannot be input, which stands for the pipeline's own payload"],
      ],
    );
    assert.deepEqual(await errors({ steps: [{ url, method: "GET", payload: 1 }] }), [
      ["/steps/0/payload", "cannot go with GET, which sends no body"],
    ]);
    assert.deepEqual(
      (await errors({ steps: [{ url, queue: "x" }, {}, 7] })).map(([pointer]: string[]) => pointer),
      ["/steps/0/queue", "/steps/1/url", "/steps/2"],
    );
  });

  test("an address that is forbidden, in any step", async () => {
    const answer = await app.call("POST", "/v1/jobs", {
      steps: [{ url }, { url: "http://169.254.169.254/" }],
    });
    assert.deepEqual(
      [answer.status, answer.body.code, answer.body.errors[0].pointer],
      [422, "blocked_target", "/steps/1/url"],
    );
  });

  test("a plain job's payload may hold what looks like a reference", async (t) => {
    const { at, got } = await stage(t, {});
    const { id } = await app.createJob({ url: at("a"), payload: { $from: "nope" } });
    await app.ended(id);
    assert.equal(got["a"]?.[0]?.body, `{"$from":"nope"}`);
    assert.equal((await read(id)).steps, null);
  });
});
