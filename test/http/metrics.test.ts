/** `/metrics`: each figure moves with what it counts, and no label takes an unbounded set of values. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { boundedQueues } from "../../src/http/metrics.ts";
import { startTestApp, type TestApp } from "../support/app.ts";
import { startTarget } from "../support/target.ts";

/** `name{labels}` → value. */
async function scrape(app: TestApp): Promise<Map<string, number>> {
  const { status, text, headers } = await app.call("GET", "/metrics", undefined, { authorization: "" });
  assert.equal(status, 200);
  assert.equal(headers.get("content-type"), "text/plain; version=0.0.4; charset=utf-8");
  const lines = text.split("\n").filter((line) => line !== "" && !line.startsWith("#"));
  return new Map(
    lines.map((line) => [
      line.slice(0, line.lastIndexOf(" ")),
      Number(line.slice(line.lastIndexOf(" ") + 1)),
    ]),
  );
}

test("jobs, attempts, durations, lateness, syncs and sizes are told", async (t) => {
  const app = await startTestApp();
  const target = await startTarget((_, count) => ({ status: count === 1 ? 503 : 200 }));
  t.after(() => app.stop());
  t.after(() => target.close());
  const { id } = await app.createJob({ url: target.url, retry_delays: ["0s"], queue: "mail" });
  await app.ended(id);
  const refused = await app.createJob({ url: "http://127.0.0.1:1/", max_attempts: 1 });
  await app.ended(refused.id);
  await app.createJob({ url: target.url, delay: "1h" });

  const metrics = await scrape(app);
  assert.equal(metrics.get(`errand_attempts_total{outcome="5xx",kind="job"}`), 1);
  assert.equal(metrics.get(`errand_attempts_total{outcome="2xx",kind="job"}`), 1);
  assert.equal(metrics.get(`errand_attempts_total{outcome="connect",kind="job"}`), 1);
  assert.equal(metrics.get(`errand_jobs{queue="mail",state="completed"}`), 1);
  assert.equal(metrics.get(`errand_jobs{queue="default",state="failed"}`), 1);
  assert.equal(metrics.get(`errand_jobs{queue="default",state="pending"}`), 1);
  assert.equal(metrics.get("errand_delivery_duration_seconds_count"), 3);
  assert.equal(metrics.get("errand_delivery_lateness_seconds_count"), 3);
  // The retry is not as late as its job is old: each attempt has a due time of its own.
  assert.equal(metrics.get(`errand_delivery_lateness_seconds_bucket{le="3600"}`), 3);
  assert.equal(metrics.get("errand_ready"), 1);
  assert.equal(metrics.get("errand_attempts_in_flight"), 0);
  for (const name of [
    "errand_store_sync_duration_seconds_count",
    `errand_store_bytes{file="database"}`,
    `errand_store_bytes{file="wal"}`,
    "process_resident_memory_bytes",
    "process_cpu_seconds_total",
  ])
    assert.ok((metrics.get(name) ?? 0) > 0, name);
  assert.equal(metrics.get(`errand_lanes{state="all"}`), 1);
  assert.ok((metrics.get(`errand_event_loop_delay_seconds{quantile="0.99"}`) ?? -1) >= 0);
});

test("ERRAND_METRICS=off: there is nothing", async (t) => {
  const app = await startTestApp({ config: { metrics: "off" } });
  t.after(() => app.stop());
  const { status, body } = await app.call("GET", "/metrics");
  assert.equal(status, 404);
  assert.equal(body["code"], "not_found");
});

test("the hundred queues with the most jobs have names, the rest share one", () => {
  const jobs = Array.from({ length: 150 }, (_, i) => ({
    queue: `q${i}`,
    status: "pending" as const,
    count: i + 1,
  }));
  const bounded = boundedQueues([...jobs, { queue: "q149", status: "failed", count: 7 }]);
  assert.equal(new Set(bounded.map(({ queue }) => queue)).size, 101);
  assert.deepEqual(
    bounded.filter(({ queue }) => queue === "other"),
    [{ queue: "other", state: "pending", count: (50 * 51) / 2 }],
  );
  assert.deepEqual(
    bounded.filter(({ queue }) => queue === "q149"),
    [
      { queue: "q149", state: "pending", count: 150 },
      { queue: "q149", state: "failed", count: 7 },
    ],
  );
});
