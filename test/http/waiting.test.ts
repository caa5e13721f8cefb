/** `?wait=`: answers at the end of the job, or when the wait is over, and costs nothing meanwhile. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Principal } from "../../src/accounts/account.ts";
import { SCOPES } from "../../src/accounts/scopes.ts";
import { Feed } from "../../src/engine/events.ts";
import { createdJob } from "../../src/jobs/created.ts";
import type { JobDetail } from "../../src/jobs/job.ts";
import { OPERATIONS } from "../../src/operations/index.ts";
import { newJob } from "../../src/operations/job-input.ts";
import type { Context } from "../../src/operations/operation.ts";
import type { Change, Store } from "../../src/store/store.ts";
import { startTestApp } from "../support/app.ts";
import { settle, VirtualClock } from "../support/clock.ts";
import { gate, startTarget } from "../support/target.ts";

test("every way to an end wakes those who wait", async () => {
  const app = await startTestApp();
  const { wait, open } = gate();
  const target = await startTarget(() => ({ status: 500, wait }));
  const failing = await app.createJob({ url: target.url, max_attempts: 1 });
  const delayed = await app.createJob({ url: target.url, delay: "1h" });
  const asking = await app.createJob({ url: target.url, requires_approval: true });
  const waits = [failing, delayed, asking].map((job) => app.ended(job["id"]));
  await target.request(1);
  open();
  await app.call("POST", `/v1/jobs/${delayed["id"]}/cancel`);
  await app.call("POST", `/v1/jobs/${asking["id"]}/reject`);
  const states = (await Promise.all(waits)).map((job) => job["status"]);
  assert.deepEqual(states, ["failed", "cancelled", "cancelled"]);
  await app.stop();
  await target.close();
});

test("the job as it is when the wait is over; an unknown one is not waited for", async () => {
  const clock = new VirtualClock();
  const app = await startTestApp({ clock });
  const { id } = await app.createJob({ url: "http://127.0.0.1:9/", delay: "1h" });
  let answered = false;
  const waiting = app.call("GET", `/v1/jobs/${id}?wait=5s`).then((answer) => {
    answered = true;
    return answer;
  });
  // A request that came later is answered earlier: the first is waiting by now.
  await app.call("GET", `/v1/jobs/${id}`);
  await clock.advance(4_999);
  await app.call("GET", `/v1/jobs/${id}`);
  assert.equal(answered, false);
  await clock.advance(1);
  assert.equal((await waiting).body["status"], "pending");
  assert.equal((await app.call("GET", "/v1/jobs/job_x?wait=60s")).status, 404);
  await app.stop();
});

test("a stop of the service answers those who wait", async () => {
  const app = await startTestApp();
  const { id } = await app.createJob({ url: "http://127.0.0.1:9/", delay: "1h" });
  const waiting = app.call("GET", `/v1/jobs/${id}?wait=60s`);
  await app.call("GET", `/v1/jobs/${id}`);
  await app.stop();
  assert.equal((await waiting).body["status"], "pending");
});

test("ten thousand who wait read the job twice each and never in between", async () => {
  const operation = OPERATIONS.find(({ name }) => name === "jobs.get")!;
  let reads = 0;
  let publish: (changes: readonly Change[]) => void = () => {};
  const tenant = { accountId: "acct_x", mode: "test" } as const;
  let job: JobDetail = createdJob(tenant, newJob({ url: "http://127.0.0.1:9/" }, 0, null), 0);
  const store = {
    subscribe(listener: typeof publish) {
      publish = listener;
      return () => {};
    },
    jobs: {
      get() {
        reads += 1;
        return Promise.resolve(job);
      },
    },
  } as unknown as Store;
  const principal: Principal = { tenant, keyId: "key_x", keyName: "x", scopes: SCOPES };
  const clock = new VirtualClock();
  const context = {
    store,
    clock,
    feed: new Feed(store),
    principal,
    signal: () => new AbortController().signal,
  } as unknown as Context;

  const waits = Array.from({ length: 10_000 }, () => operation.run(context, { id: job.id, wait: "60s" }));
  await settle();
  assert.equal(reads, 10_000);
  await clock.advance("50s");
  assert.equal(reads, 10_000);
  job = { ...job, status: "completed" };
  publish([
    {
      kind: "job",
      tenant,
      jobId: job.id,
      status: "completed",
      previous: "active",
      queue: "q",
      scheduleId: null,
      at: 0,
    },
  ]);
  for (const answer of await Promise.all(waits))
    assert.equal((answer as { status: string }).status, "completed");
  assert.equal(reads, 20_000);
});
