/** Events followed live on the command line, also across a restart of the service. */
import assert from "node:assert/strict";
import { createInterface } from "node:readline";
import { test } from "node:test";
import { startTestApp } from "../support/app.ts";
import { startCli } from "../support/cli.ts";
import { startTarget } from "../support/target.ts";

test("watch shows jobs as they change, and takes the stream up again after a restart", async (t) => {
  let app = await startTestApp();
  const { port, folder } = app;
  const env = { ERRAND_URL: app.url, ERRAND_API_KEY: app.key };
  const child = startCli(["jobs", "watch", "--queue", "mail", "-o", "ndjson"], { env });
  t.after(() => {
    child.kill();
    return app.stop();
  });
  const lines = createInterface(child.stdout)[Symbol.asyncIterator]();
  const notes = createInterface(child.stderr)[Symbol.asyncIterator]();
  const nextEvent = async () => JSON.parse((await lines.next()).value as string) as Record<string, string>;
  const mail = { url: "http://127.0.0.1:9/", queue: "mail", delay: "1h" };

  // Events from before the connection are not shown, and when it stands only its first event can tell.
  const first = nextEvent();
  const state = { seen: false };
  void first.then(() => (state.seen = true));
  while (!state.seen) await app.createJob(mail);
  assert.equal((await first)["type"], "job.created");

  await app.stop({ keep: true });
  assert.equal((await notes.next()).value, "errand: the connection has ended; trying again");
  app = await startTestApp({ folder, config: { port } });
  assert.match((await notes.next()).value as string, /what happened meanwhile is not shown/);
  await app.createJob({ ...mail, queue: "other" });
  const { id } = await app.createJob(mail);
  let event = await nextEvent();
  while (event["job_id"] !== id) event = await nextEvent();
  assert.equal(event["queue"], "mail");
});

test("watch tries again while a service that stops refuses it", async (t) => {
  const stream = (id: string, jobId: string) => ({
    headers: { "content-type": "text/event-stream" },
    body: `id: ${id}\nevent: job.created\ndata: {"job_id":"${jobId}"}\n\n`,
  });
  const stopping = {
    status: 503,
    headers: { "content-type": "application/problem+json" },
    body: JSON.stringify({ status: 503, code: "unavailable", detail: "Errand is shutting down." }),
  };
  const service = await startTarget((_, count) =>
    count === 2 ? stopping : stream(String(count), count === 1 ? "before" : "after"),
  );
  const env = { ERRAND_URL: `http://127.0.0.1:${service.port}`, ERRAND_API_KEY: "errand_test_0" };
  const child = startCli(["jobs", "watch", "-o", "id"], { env });
  t.after(() => {
    child.kill();
    return service.close();
  });
  const lines = createInterface(child.stdout)[Symbol.asyncIterator]();
  assert.equal((await lines.next()).value, "before");
  assert.equal((await lines.next()).value, "after");
  assert.equal(service.received[2]?.headers["last-event-id"], "1");
});
