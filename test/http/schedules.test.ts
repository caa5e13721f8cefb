/** Schedules over real HTTP: every endpoint, what it refuses, and what a job of a schedule carries. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { type Answer, startTestApp, type TestApp } from "../support/app.ts";
import { VirtualClock } from "../support/clock.ts";
import { startTarget, type Target } from "../support/target.ts";

const SOME_URL = "http://127.0.0.1:9/";

describe("schedules", () => {
  let app: TestApp;
  let target: Target;
  const clock = new VirtualClock("2026-03-01T12:00:30.000Z");
  before(async () => {
    target = await startTarget();
    app = await startTestApp({ clock });
  });
  after(async () => {
    await app.stop();
    await target.close();
  });

  async function create(fields: Record<string, unknown>): Promise<Record<string, any>> {
    const answer = await app.call("POST", "/v1/schedules", {
      cron_expr: "0 * * * *",
      url: SOME_URL,
      ...fields,
    });
    assert.equal(answer.status, 201, answer.text);
    return answer.body;
  }
  const patch = (id: string, fields: unknown) => app.call("PATCH", `/v1/schedules/${id}`, fields);

  test("a created schedule reads back with its next run, its description and why it runs", async () => {
    const created = await create({ cron_expr: "30 9 * * 1-5", timezone: "Europe/Berlin", name: "report" });
    assert.equal(created["next_run_at"], "2026-03-02T08:30:00.000Z");
    assert.equal(created["status"], "scheduled");
    assert.match(created["description"], /09:30.*Monday through Friday/);
    const { body } = await app.call("GET", `/v1/schedules/${created["id"]}`);
    assert.deepEqual(body, created);
    const ended = await create({ ends_at: "2026-03-01T12:30:00Z" });
    assert.equal(ended["next_run_at"], null);
    assert.equal(ended["status"], "ended");
  });

  test("what is wrong is refused with what would be right", async () => {
    const cases: [Record<string, unknown>, number, string, RegExp][] = [
      [{ cron_expr: "* * * * * *" }, 422, "invalid_cron", /five/],
      [{ timezone: "+02:00" }, 422, "invalid_timezone", /IANA/],
      [{ url: "ftp://x/" }, 422, "invalid_url", /http/],
      [{ url: "http://169.254.169.254/" }, 422, "blocked_target", /169\.254/],
      [{ steps: [{ url: "http://169.254.169.254/" }], url: undefined }, 422, "blocked_target", /169\.254/],
      [{ dedupe_key: "x" }, 422, "invalid_request", /not a field/],
      [{ delay: "5m" }, 422, "invalid_request", /not a field/],
      [
        { starts_at: "2026-03-02T00:00:00Z", ends_at: "2026-03-01T00:00:00Z" },
        422,
        "invalid_request",
        /after/,
      ],
      [{ headers: { authorization: "***" } }, 422, "invalid_request", /secret itself/],
      [{ name: "report" }, 409, "name_taken", /by-name\/report/],
    ];
    for (const [fields, status, code, message] of cases) {
      const answer = await app.call("POST", "/v1/schedules", {
        cron_expr: "0 * * * *",
        url: SOME_URL,
        ...fields,
      });
      assert.equal(answer.status, status, JSON.stringify(fields));
      assert.equal(answer.body["code"], code);
      assert.match(answer.text, message);
    }
  });

  test("an Idempotency-Key makes one schedule of fifty creates", async () => {
    const body = { cron_expr: "0 0 * * *", url: SOME_URL, name: "once" };
    const answers = await Promise.all(
      Array.from({ length: 50 }, () =>
        app.call("POST", "/v1/schedules", body, { "idempotency-key": "the-one" }),
      ),
    );
    assert.deepEqual(new Set(answers.map(({ status }) => status)), new Set([201]));
    assert.equal(new Set(answers.map(({ text }) => text)).size, 1);
  });

  test("PUT by name creates once, then says what it changed, and writes nothing when nothing differs", async () => {
    const path = `/v1/schedules/by-name/${encodeURIComponent("nightly / deploy")}`;
    const body = {
      cron_expr: "0 3 * * *",
      url: SOME_URL,
      headers: { authorization: "Bearer s3" },
      payload: { a: 1 },
    };
    const first = await app.call("PUT", path, body);
    assert.equal(first.status, 201, first.text);
    assert.equal(first.body["change"], "created");
    assert.equal(first.body["name"], "nightly / deploy");
    await clock.advance("1s");
    const again = await app.call("PUT", path, body);
    assert.equal(again.status, 200);
    assert.equal(again.body["change"], "unchanged");
    assert.equal(again.body["updated_at"], first.body["updated_at"]);
    const masked = await app.call("PUT", path, { ...body, headers: { authorization: "***" } });
    assert.equal(masked.body["change"], "unchanged");
    const other = await app.call("PUT", path, { ...body, cron_expr: "0 4 * * *" });
    assert.equal(other.body["change"], "replaced");
    assert.equal(other.body["id"], first.body["id"]);
    assert.equal(other.body["next_run_at"], "2026-03-02T04:00:00.000Z");
    // What is left out gets its default; a pause survives a deploy.
    await app.call("POST", `/v1/schedules/${other.body["id"]}/pause`);
    const { payload: _payload, ...less } = body;
    const deployed = await app.call("PUT", path, less);
    assert.equal(deployed.body["payload"], null);
    assert.equal(deployed.body["paused"], true);
    assert.equal((await app.call("PUT", path, { ...less, paused: false })).body["status"], "scheduled");
    const fifty = await Promise.all(
      Array.from({ length: 50 }, () => app.call("PUT", "/v1/schedules/by-name/race", body)),
    );
    assert.equal(fifty.filter(({ status }) => status === 201).length, 1);
    assert.equal(new Set(fifty.map((one) => one.body["id"])).size, 1);
  });

  test("a stored secret goes to no other origin: whoever may change a schedule could have it sent to himself", async () => {
    const elsewhere = "http://127.0.0.1:10/x";
    const refused = (answer: Answer<any>, pointer: string) => {
      assert.equal(answer.status, 422, answer.text);
      assert.deepEqual(
        answer.body["errors"].map((one: any) => one.pointer),
        [pointer],
      );
      assert.match(answer.text, /another origin now; give the secret itself/);
    };
    const made = await create({ name: "secretive", headers: { authorization: "Bearer s3", "x-a": "1" } });
    const { id, cron_expr } = made;
    refused(await patch(id, { url: elsewhere }), "/headers/authorization");
    const headers = { authorization: "***" };
    refused(await patch(id, { url: elsewhere, headers }), "/headers/authorization");
    const put = { cron_expr, url: elsewhere, headers };
    refused(await app.call("PUT", "/v1/schedules/by-name/secretive", put), "/headers/authorization");
    assert.equal((await app.call("GET", `/v1/schedules/${id}`)).body["url"], SOME_URL);

    const sameOrigin = (await patch(id, { url: new URL("/another/path", SOME_URL).href })).body;
    assert.deepEqual(sameOrigin["headers"], { authorization: "***", "x-a": "1" });
    // In a header that is no secret three stars are three stars.
    const starred = (await patch(id, { headers: { Authorization: "***", "x-a": "***" } })).body;
    assert.deepEqual(starred["headers"], { Authorization: "***", "x-a": "***" });
    const given = await patch(id, { url: elsewhere, headers: { authorization: "Bearer s3" } });
    assert.equal(given.body["url"], elsewhere);
    assert.equal((await patch(id, { url: SOME_URL, headers: {} })).status, 200);

    const steps = (url: string, cookie: string) => [{ name: "one", url, headers: { cookie } }];
    assert.equal((await patch(id, { steps: steps(SOME_URL, "c=1") })).status, 200);
    refused(await patch(id, { steps: steps(elsewhere, "***") }), "/steps/0/headers/cookie");
    assert.equal((await patch(id, { steps: steps(SOME_URL, "***") })).status, 200);
  });

  test("PATCH changes what it names, clears by null, and sets the next run anew when its rule changed", async () => {
    const made = await create({ starts_at: "2026-04-01T00:00:00Z", name: "p", payload: { n: 1 } });
    const { id } = made;
    assert.equal(made["next_run_at"], "2026-04-01T00:00:00.000Z");
    assert.deepEqual((await patch(id, {})).body, made);
    await clock.advance("1s");
    assert.deepEqual((await patch(id, { name: "p" })).body, made);

    const url = (await patch(id, { url: target.url, max_attempts: 7 })).body;
    assert.equal(url["url"], target.url);
    assert.equal(url["max_attempts"], 7);
    assert.deepEqual(url["payload"], { n: 1 });
    assert.equal(url["next_run_at"], made["next_run_at"]);
    assert.notEqual(url["updated_at"], made["updated_at"]);

    const cleared = (await patch(id, { starts_at: null, name: null })).body;
    assert.equal(cleared["next_run_at"], "2026-03-01T13:00:00.000Z");
    assert.equal(cleared["name"], null);
    const cron = (await patch(id, { cron_expr: "15 9 * * *", timezone: "Asia/Kolkata" })).body;
    assert.equal(cron["next_run_at"], "2026-03-02T03:45:00.000Z");
    assert.equal((await patch(id, { ends_at: "2026-03-01T20:00:00Z" })).body["status"], "ended");
    assert.equal((await patch(id, { ends_at: null, paused: true })).body["status"], "paused");
    assert.equal((await patch(id, { paused: false })).body["next_run_at"], "2026-03-02T03:45:00.000Z");

    const refusals: [unknown, string][] = [
      [{ cron_expr: "nonsense" }, "invalid_cron"],
      [{ timezone: "Mars/Olympus" }, "invalid_timezone"],
      [{ url: "http://169.254.169.254/" }, "blocked_target"],
      [{ unknown: 1 }, "invalid_request"],
      [{ cron_expr: null }, "invalid_request"],
      [{ method: "GET", payload: 1 }, "invalid_request"],
      [{ starts_at: "2026-03-02T00:00:00Z", ends_at: "2026-03-01T00:00:00Z" }, "invalid_request"],
      [{ name: "report" }, "name_taken"],
    ];
    for (const [fields, code] of refusals)
      assert.equal((await patch(id, fields)).body["code"], code, JSON.stringify(fields));
    assert.equal((await patch("sch_01kq00000000000000000000zz", {})).status, 404);
  });

  test("PATCH to GET drops the payload, which GET cannot send; a payload given beside it is refused", async () => {
    const { id } = await create({ payload: { n: 1 } });
    const refused = await patch(id, { method: "GET", payload: null });
    assert.equal(refused.status, 422);
    assert.deepEqual(refused.body["errors"], [
      { pointer: "/payload", detail: "cannot go with GET, which sends no body" },
    ]);
    assert.deepEqual((await patch(id, { method: "PUT" })).body["payload"], { n: 1 });
    const changed = await patch(id, { method: "GET" });
    assert.equal(changed.status, 200, changed.text);
    assert.deepEqual([changed.body["method"], changed.body["payload"]], ["GET", null]);
    assert.equal((await patch(id, { method: "POST" })).body["payload"], null);
    const pipeline = await create({ url: undefined, steps: [{ url: SOME_URL }], payload: 1 });
    const single = await patch(pipeline["id"], { url: SOME_URL, method: "GET" });
    assert.deepEqual([single.status, single.body["payload"]], [200, null]);
  });

  test("a pipeline takes the place of a url and the other way round; steps follow the rules they inherited", async () => {
    const { id } = await create({ headers: { "x-a": "1" }, max_attempts: 4 });
    const steps = [
      { url: SOME_URL },
      { name: "last", url: SOME_URL, max_attempts: 9, headers: { cookie: "c=1" } },
    ];
    const piped = (await patch(id, { steps })).body;
    assert.equal(piped["url"], null);
    assert.deepEqual(piped["headers"], {});
    const attempts = (body: Record<string, any>) => body["steps"].map((step: any) => step.max_attempts);
    assert.deepEqual(attempts(piped), [4, 9]);
    const more = (await patch(id, { max_attempts: 6 })).body;
    assert.deepEqual(attempts(more), [6, 9]);
    assert.equal(more["steps"][1].headers.cookie, "***");
    const plain = (await patch(id, { url: SOME_URL })).body;
    assert.equal(plain["steps"], null);
    assert.equal(plain["url"], SOME_URL);
    assert.equal((await patch(id, { url: SOME_URL, steps })).body["code"], "invalid_request");
  });

  test("a resumed schedule does not fire for the time it was paused", async () => {
    const { id } = await create({ cron_expr: "* * * * *", url: target.url, on_missed: "all" });
    const paused = (await app.call("POST", `/v1/schedules/${id}/pause`)).body;
    assert.equal(paused["next_run_at"], null);
    assert.equal(paused["status"], "paused");
    assert.deepEqual((await app.call("POST", `/v1/schedules/${id}/pause`)).body, paused);
    assert.deepEqual((await app.call("GET", `/v1/schedules/${id}/next`)).body["data"], []);
    await clock.advance("10m");
    const resumed = (await app.call("POST", `/v1/schedules/${id}/resume`)).body;
    assert.equal(resumed["next_run_at"], "2026-03-01T12:11:00.000Z");
    const ledger = await app.call("GET", `/v1/schedules/${id}/occurrences`);
    assert.deepEqual(ledger.body["data"], []);
    assert.equal((await app.call("DELETE", `/v1/schedules/${id}`)).status, 204);
  });

  test("a change in the second of a due time decides that time first, under the old rule", async (t) => {
    // A clock of its own, whose scheduler sleeps while the wall clock is already past the due time.
    const own = new VirtualClock("2026-03-01T12:00:30.000Z");
    const other = await startTestApp({ clock: own });
    t.after(() => other.stop());
    const made = await other.call("POST", "/v1/schedules", { cron_expr: "* * * * *", url: target.url });
    const path = `/v1/schedules/${made.body["id"]}`;
    own.jump(Date.parse("2026-03-01T12:01:00.250Z"));
    const changed = await other.call("PATCH", path, { cron_expr: "0 0 1 1 *" });
    assert.equal(changed.body["next_run_at"], "2027-01-01T00:00:00.000Z");
    const { body } = await other.call("GET", `${path}/occurrences`);
    assert.deepEqual(
      body["data"].map((line: any) => [line.scheduled_for, line.outcome, line.lateness_ms]),
      [["2026-03-01T12:01:00.000Z", "fired", 250]],
    );
    assert.equal(changed.body["last_job_id"], body["data"][0].job_id);
  });

  test("a job of a schedule carries what the schedule says, its bytes and its name", async () => {
    const body = `{"cron_expr":"* * * * *","url":"${target.url}","payload":{"b":1.0,"a":9007199254740993,"t":"\\u00e9"},"headers":{"authorization":"Bearer hush-hush"},"queue":"nightly","tags":["a"],"max_attempts":2}`;
    const made = await app.call("POST", "/v1/schedules", body);
    const { id } = made.body;
    assert.equal(made.body["headers"].authorization, "***");
    assert.match(made.text, /"payload":\{"b":1\.0,"a":9007199254740993,"t":"\\u00e9"\}/);
    const patched = await patch(id as string, {
      max_attempts: 3,
      headers: { Authorization: "***", "x-b": "2" },
    });
    assert.match(patched.text, /"payload":\{"b":1\.0,"a":9007199254740993,"t":"\\u00e9"\}/);
    const sofar = target.received.length;
    await clock.advance("1m");
    const received = await target.request(sofar + 1);
    assert.equal(received.body, `{"b":1.0,"a":9007199254740993,"t":"\\u00e9"}`);
    assert.equal(received.headers["errand-schedule-id"], id);
    assert.equal(received.headers.authorization, "Bearer hush-hush");
    assert.equal(received.headers["x-b"], "2");
    const listed = await app.call("GET", `/v1/jobs?schedule_id=${id}`);
    const [job] = listed.body["data"];
    assert.equal(job.schedule_id, id);
    assert.equal(job.queue, "nightly");
    const read = (await app.call("GET", `/v1/schedules/${id}`)).body;
    assert.equal(read["last_job_id"], job.id);
    assert.equal(job.scheduled_for, read["last_run_at"]);
    assert.equal((await app.call("DELETE", `/v1/schedules/${id}`)).status, 204);
    assert.equal((await app.call("GET", `/v1/schedules/${id}`)).status, 404);
    assert.equal((await app.call("GET", `/v1/jobs/${job.id}`)).status, 200);
    for (const file of ["errand.db", "errand.db-wal"])
      assert.ok(!readFileSync(join(app.folder, file)).includes("hush-hush"), file);
  });

  test("trigger makes a job now, also while paused, once per Idempotency-Key", async () => {
    const steps = [{ url: target.url, payload: { first: true } }, { url: target.url }];
    const { id } = await create({ url: undefined, steps, paused: true });
    const trigger = () =>
      app.call("POST", `/v1/schedules/${id}/trigger`, undefined, { "idempotency-key": `t-${id}` });
    const made = await trigger();
    assert.equal(made.status, 200, made.text);
    assert.equal(made.body["schedule_id"], id);
    assert.equal(made.body["scheduled_for"], null);
    const again = await trigger();
    assert.equal(again.text, made.text);
    assert.equal(again.headers.get("idempotency-replayed"), "true");
    const job = await app.ended(made.body["id"]);
    assert.equal(job["status"], "completed");
    assert.equal(job["steps"].length, 2);
    const read = (await app.call("GET", `/v1/schedules/${id}`)).body;
    assert.equal(read["last_job_id"], made.body["id"]);
    assert.equal(read["next_run_at"], null);
    assert.deepEqual((await app.call("GET", `/v1/schedules/${id}/occurrences`)).body["data"], []);
    assert.equal((await app.call("POST", "/v1/schedules/sch_none/trigger")).status, 404);
  });

  test("the coming times are told with what daylight saving does to them", async () => {
    const rule = { cron_expr: "30 2 * * *", timezone: "Europe/Berlin" };
    const { id } = await create({ ...rule, starts_at: "2026-03-28T00:00:00Z" });
    const next = await app.call("GET", `/v1/schedules/${id}/next?count=2`);
    assert.deepEqual(next.body["data"], [
      { at: "2026-03-28T01:30:00.000Z", local: "2026-03-28T02:30:00+01:00" },
      { at: "2026-03-29T01:00:00.000Z", local: "2026-03-29T03:00:00+02:00", note: "dst_gap" },
    ]);
    const preview = await app.call("POST", "/v1/schedules/preview", { ...rule, count: 100 });
    assert.equal(preview.status, 200);
    assert.equal(preview.body["data"].length, 100);
    assert.equal((await app.call("POST", "/v1/schedules/preview", rule)).body["data"].length, 10);
    assert.equal((await app.call("POST", "/v1/schedules/preview", {})).body["code"], "invalid_request");
    for (const query of ["count=0", "count=101", "count=x", "counts=1"])
      assert.equal((await app.call("GET", `/v1/schedules/${id}/next?${query}`)).status, 422, query);
  });

  test("the ledger comes in pages, latest first", async () => {
    const { id } = await create({ cron_expr: "*/5 * * * *", url: target.url, on_missed: "all" });
    await clock.advance("26m");
    const path = `/v1/schedules/${id}/occurrences`;
    const first = (await app.call("GET", `${path}?limit=3`)).body;
    const second = (await app.call("GET", `${path}?limit=3&cursor=${first["next_cursor"]}`)).body;
    const times = [...first["data"], ...second["data"]].map((line: any) => line.scheduled_for);
    assert.equal(new Set(times).size, times.length);
    assert.deepEqual(
      times,
      times.toSorted((a, b) => (a < b ? 1 : -1)),
    );
    assert.ok(times.length >= 5);
    assert.equal(second["next_cursor"], null);
    assert.ok(first["data"].every((line: any) => line.outcome === "fired" && line.job_id !== null));
    assert.equal((await app.call("GET", "/v1/schedules/sch_none/occurrences")).status, 404);
  });

  test("a page of large schedules ends early, and none of them is lost", async () => {
    const made: string[] = [];
    for (let i = 0; i < 12; i += 1) made.push((await create({ payload: "x".repeat(1_000_000) }))["id"]);
    const seen: string[] = [];
    let cursor: string | null = null;
    do {
      const query: string = cursor === null ? "" : `&cursor=${cursor}`;
      const { text, body } = await app.call("GET", `/v1/schedules?limit=100${query}`);
      assert.ok(text.length < 10 * 1024 * 1024, `${text.length} bytes`);
      seen.push(...body["data"].map(({ id }: { id: string }) => id));
      cursor = body["next_cursor"];
    } while (cursor !== null);
    assert.deepEqual(seen.slice(0, made.length), made.toReversed());
    assert.equal(new Set(seen).size, seen.length);
  });
});
