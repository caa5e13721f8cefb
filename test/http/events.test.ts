/** `GET /v1/events`: what is told, to whom, from where a reader goes on, and that a stalled one is in nobody's way. */
import assert from "node:assert/strict";
import { connect } from "node:net";
import { type TestContext, test } from "node:test";
import { HEARTBEAT_MS } from "../../src/http/events.ts";
import { startTestApp, type TestApp, type TestAppOptions } from "../support/app.ts";
import { VirtualClock } from "../support/clock.ts";
import { assertEventConforms } from "../support/conforms.ts";
import { type EventReader, type ReadOptions, readEvents } from "../support/events.ts";
import { startTarget } from "../support/target.ts";

async function start(t: TestContext, options?: TestAppOptions): Promise<TestApp> {
  const app = await startTestApp(options);
  t.after(() => app.stop());
  return app;
}

async function read(t: TestContext, app: TestApp, options?: ReadOptions) {
  const reader = await readEvents(app, options);
  t.after(() => reader.close());
  return reader;
}

const laterJob = { url: "http://127.0.0.1:9/", delay: "1h" };
const thousandOf = (job: object) => Array.from({ length: 1_000 }, () => job);
const typesOf = (reader: EventReader, jobId: string) =>
  reader.seen.filter(({ data }) => data["job_id"] === jobId).map(({ event }) => event);

test("a job's life is told, compactly and in order", async (t) => {
  const app = await start(t);
  const target = await startTarget();
  t.after(() => target.close());
  const reader = await read(t, app);
  assert.equal(reader.status, 200);
  assert.equal(reader.headers["content-type"], "text/event-stream");
  assert.ok(reader.headers["x-request-id"]);

  const { id } = await app.createJob({ url: target.url });
  const { data } = await reader.until(({ event }) => event === "job.completed");
  assert.deepEqual(typesOf(reader, id), ["job.created", "job.started", "job.completed"]);
  assert.deepEqual(data, {
    type: "job.completed",
    at: data["at"],
    job_id: id,
    status: "completed",
    previous: "active",
    queue: "default",
  });
  assert.match(data["at"], /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
});

test("schedules are told too", async (t) => {
  const app = await start(t);
  const reader = await read(t, app);
  const created = await app.call("POST", "/v1/schedules", {
    cron_expr: "0 9 * * *",
    url: "http://127.0.0.1:9/",
  });
  const { data } = await reader.until(({ event }) => event === "schedule.created");
  assert.equal(data["schedule_id"], created.body.id);
  assert.equal(data["next_run_at"], created.body.next_run_at);
});

test("every event is one that the API description has", async (t) => {
  const clock = new VirtualClock("2026-03-01T00:00:00.000Z");
  const app = await start(t, { clock });
  const target = await startTarget();
  t.after(() => target.close());
  const reader = await read(t, app);
  const schedule = async (fields: object) =>
    (await app.call("POST", "/v1/schedules", { cron_expr: "0 9 * * *", url: target.url, ...fields })).body.id;
  const id = await schedule({});
  await app.call("PATCH", `/v1/schedules/${id}`, { requires_approval: true });
  const triggered = await app.call("POST", `/v1/schedules/${id}/trigger`);
  await app.call("POST", `/v1/jobs/${triggered.body.id}/approve`);
  await reader.until(({ event }) => event === "job.completed");
  const overlapping = await schedule({ on_overlap: "skip", requires_approval: true });
  const skipping = await schedule({ on_missed: "skip" });
  await clock.leap("48h");
  await reader.until(({ event, data }) => event === "schedule.missed" && data["schedule_id"] === skipping);
  await clock.leap("24h");
  await reader.until(
    ({ event, data }) => event === "schedule.skipped" && data["schedule_id"] === overlapping,
  );
  await app.call("DELETE", `/v1/schedules/${id}`);
  await app.call("POST", "/v1/jobs/cancel", {});
  await reader.until(({ event }) => event === "schedule.deleted");
  await reader.until(({ event }) => event === "job.cancelled");
  for (const { event, data } of reader.seen) {
    assert.equal(event, data["type"]);
    assertEventConforms(data);
  }
  const seen = new Set(reader.seen.map(({ event }) => event));
  for (const type of ["schedule.triggered", "schedule.fired"]) assert.ok(seen.has(type), type);
});

test("a reader that comes back with its last id misses nothing", async (t) => {
  const app = await start(t);
  const first = await read(t, app);
  const one = await app.createJob(laterJob);
  const { id: lastId } = await first.until(({ data }) => data["job_id"] === one.id);
  first.close();
  const missed = await app.createJob(laterJob);

  const byHeader = await read(t, app, { headers: { "last-event-id": lastId } });
  await byHeader.until(({ data }) => data["job_id"] === missed.id);
  assert.deepEqual(typesOf(byHeader, one.id), []);
  const byQuery = await read(t, app, { path: `/v1/events?last_event_id=${lastId}` });
  await byQuery.until(({ data }) => data["job_id"] === missed.id);
  assert.equal(byQuery.seen[0]?.event, "job.created");
});

test("without an id the stream begins now, and says where that is", async (t) => {
  const app = await start(t);
  const before = await app.createJob(laterJob);
  const reader = await read(t, app);
  await reader.untilText("\n\n");
  const lastId = reader.lastId();
  assert.notEqual(lastId, "");
  const after = await app.createJob(laterJob);
  await reader.until(({ data }) => data["job_id"] === after.id);
  assert.deepEqual(typesOf(reader, before.id), []);

  const again = await read(t, app, { headers: { "last-event-id": lastId } });
  await again.until(({ data }) => data["job_id"] === after.id);
  assert.equal(again.seen.length, 1);
});

test("after a restart, and for an id that means nothing, a reset says to list again", async (t) => {
  const before = await startTestApp();
  const reader = await readEvents(before);
  const job = await before.createJob(laterJob);
  const { id: lastId } = await reader.until(({ data }) => data["job_id"] === job.id);
  await before.stop({ keep: true });
  await reader.ended;

  const app = await start(t, { folder: before.folder });
  // Its positions begin anew: the old one would be one of them but for the mark of its process.
  for (let i = 0; i < 3; i += 1) await app.createJob(laterJob);
  const ids = [lastId, "nonsense", lastId.replace(/-.*/, "-99999999"), "é", ""];
  for (const id of ids.map((text) => encodeURIComponent(text))) {
    const back = await read(t, app, { path: `/v1/events?last_event_id=${id}` });
    const { data } = await back.until(({ event }) => event === "reset");
    assert.equal(data["type"], "reset");
    assert.equal(back.seen.length, 1);
    // No id comes before the reset: cut off there, the reader would come back as if it had missed nothing.
    assert.doesNotMatch(back.text().split("event: reset")[0]!, /id:[^]*\n\n/);
    const next = await app.createJob(laterJob);
    await back.until((event) => event.data["job_id"] === next.id);
    back.close();
  }
});

test("a reader that was away for too many events is told so", async (t) => {
  const app = await start(t);
  const reader = await read(t, app);
  await reader.untilText("\n\n");
  const lastId = reader.lastId();
  reader.close();
  for (let i = 0; i < 11; i += 1) await app.call("POST", "/v1/jobs/batch", { jobs: thousandOf(laterJob) });
  const back = await read(t, app, { headers: { "last-event-id": lastId } });
  await back.until(({ event }) => event === "reset");
});

test("a silent stream says every 15 seconds that it lives, and where it stands", async (t) => {
  const clock = new VirtualClock();
  const app = await start(t, { clock });
  const reader = await read(t, app);
  await reader.untilText("\n\n");
  assert.ok(!reader.text().includes(": alive"));
  await clock.advance(HEARTBEAT_MS);
  await reader.untilText(`: alive\nid: ${reader.lastId()}\n\n`);
  assert.equal(reader.seen.length, 0);
});

test("a reader that does not read holds no events up, and is disconnected", async (t) => {
  const clock = new VirtualClock();
  const app = await start(t, { clock });
  const stalled = connect(app.port, "127.0.0.1");
  t.after(() => stalled.destroy());
  const closed = new Promise<void>((resolve) => stalled.once("close", () => resolve()));
  stalled.on("error", () => {});
  stalled.pause();
  stalled.write(`GET /v1/events HTTP/1.1\r\nhost: errand\r\nauthorization: Bearer ${app.key}\r\n\r\n`);
  const reader = await read(t, app);

  // More than the buffers of a loopback connection take: each event is some 300 bytes.
  const job = { ...laterJob, queue: "q".repeat(64) };
  let last = "";
  for (let i = 0; i < 25; i += 1) {
    const { body } = await app.call("POST", "/v1/jobs/batch", { jobs: thousandOf(job) });
    last = body["data"].at(-1).id;
    await reader.until(({ data }) => data["job_id"] === last);
  }
  assert.equal(reader.seen.length, 25_000);
  await clock.advance(HEARTBEAT_MS);
  await clock.advance(HEARTBEAT_MS);
  stalled.resume();
  await closed;
});

test("a stop ends the streams and the waits at once, also on connections that would be kept", async () => {
  // On a clock that stands still nothing is cut off: each connection has to go by itself.
  const app = await startTestApp({ clock: new VirtualClock() });
  const reader = await readEvents(app, { headers: { connection: "keep-alive" } });
  const { id } = await app.createJob(laterJob);
  const waiting = app.call("GET", `/v1/jobs/${id}?wait=60s`);
  // The wait is being served once the server has answered a request that came after it on another connection.
  await reader.until(({ data }) => data["job_id"] === id);
  await app.call("GET", "/v1/account");
  await app.stop();
  await reader.ended;
  assert.equal((await waiting).body["status"], "pending");
});

test("it needs a key with the scope read, and takes no other parameter", async (t) => {
  const app = await start(t);
  const none = await app.call("GET", "/v1/events", undefined, { authorization: "" });
  assert.equal(none.status, 401);
  const unknown = await app.call("GET", "/v1/events?type=job");
  assert.equal(unknown.status, 422);
  const post = await app.call("POST", "/v1/events", {});
  assert.equal(post.status, 405);
});

test("HEAD answers and is over", async (t) => {
  const app = await start(t);
  const socket = connect(app.port, "127.0.0.1");
  t.after(() => socket.destroy());
  const common = `host: errand\r\nauthorization: Bearer ${app.key}\r\n`;
  // Answers on one connection come in order: the second only when the first is over.
  socket.write(`HEAD /v1/events HTTP/1.1\r\n${common}\r\n`);
  socket.write(`GET /livez HTTP/1.1\r\n${common}connection: close\r\n\r\n`);
  let text = "";
  for await (const chunk of socket) text += String(chunk);
  const [head, livez] = text.split("\r\n\r\n");
  assert.match(head!, /^HTTP\/1\.1 200 [\s\S]*content-type: text\/event-stream/i);
  assert.match(livez!, /^HTTP\/1\.1 200/);
});
