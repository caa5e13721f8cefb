/** The feed: each tenant reads its own events, from any place that is still kept, and is woken once for each commit. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Tenant } from "../../src/base/tenant.ts";
import { Feed } from "../../src/engine/events.ts";
import type { Change, JobChange } from "../../src/store/store.ts";

const ours: Tenant = { accountId: "acct_1", mode: "test" };
const strangers: readonly Tenant[] = [
  { accountId: "acct_1", mode: "live" },
  { accountId: "acct_2", mode: "test" },
];

function feedOf() {
  let commit: (changes: readonly Change[]) => void = () => {};
  let subscribed = true;
  const feed = new Feed({
    subscribe(listener) {
      commit = listener;
      return () => (subscribed = false);
    },
  });
  return { feed, commit: (...changes: Change[]) => commit(changes), isSubscribed: () => subscribed };
}

function change(tenant: Tenant, jobId: string, more: Partial<JobChange> = {}): JobChange {
  return {
    kind: "job",
    tenant,
    jobId,
    status: "pending",
    previous: null,
    queue: "default",
    scheduleId: null,
    at: 0,
    ...more,
  };
}

const ids = (read: ReturnType<Feed["read"]>) =>
  read?.events.map((event) => (event.change.kind === "job" ? event.change.jobId : ""));

test("a tenant reads and hears its own events only", () => {
  const { feed, commit } = feedOf();
  let woken = 0;
  const stop = feed.listen(ours, () => (woken += 1));
  commit(...strangers.map((tenant) => change(tenant, "theirs")));
  assert.equal(woken, 0);
  commit(change(ours, "a"), change(strangers[0]!, "theirs"), change(ours, "b"));
  assert.equal(woken, 1);
  assert.deepEqual(ids(feed.read(ours, 0, 10)), ["a", "b"]);
  stop();
  commit(change(ours, "c"));
  assert.equal(woken, 1);
});

test("a reader goes on where it stopped, piece by piece", () => {
  const { feed, commit } = feedOf();
  const named = Array.from({ length: 7 }, (_, i) => `job_${i}`);
  for (const name of named) commit(change(strangers[1]!, "theirs"), change(ours, name));
  const got: string[] = [];
  let position = 0;
  for (
    let read = feed.read(ours, position, 3);
    read!.events.length > 0;
    read = feed.read(ours, position, 3)
  ) {
    got.push(...ids(read)!);
    position = read!.position;
  }
  assert.deepEqual(got, named);
  assert.equal(position, feed.position);
});

test("the last 10,000 events are kept, whatever came before them", () => {
  const { feed, commit } = feedOf();
  assert.ok(feed.keeps(ours, 0));
  assert.ok(!feed.keeps(ours, 1));
  for (let i = 1; i <= 35_000; i += 1) {
    commit(change(ours, `${i}`));
    if (i % 1_111 !== 0) continue;
    const oldest = Math.max(0, i - 10_000);
    assert.ok(feed.keeps(ours, oldest));
    assert.equal(feed.keeps(ours, oldest - 1), false);
    assert.equal(feed.read(ours, oldest - 1, 1), null);
    assert.deepEqual(ids(feed.read(ours, oldest, 1)), [`${oldest + 1}`]);
    assert.deepEqual(ids(feed.read(ours, i - 1, 5)), [`${i}`]);
    assert.deepEqual(ids(feed.read(ours, i, 5)), []);
    assert.equal(feed.read(ours, i + 1, 5), null);
  }
});

test("a tenant misses nothing by what others do, however much that is", () => {
  const { feed, commit } = feedOf();
  commit(change(ours, "a"));
  const { position } = feed;
  for (let i = 0; i < 25_000; i += 1) commit(change(strangers[1]!, "theirs"));
  assert.deepEqual(feed.read(ours, position, 5), { events: [], position: feed.position });
  commit(change(ours, "b"));
  assert.deepEqual(ids(feed.read(ours, position, 5)), ["b"]);
  assert.equal(feed.read(ours, position - 1, 5), null);
  assert.equal(feed.read(strangers[1]!, position, 5), null);
  for (let i = 0; i < 10_000; i += 1) commit(change(strangers[1]!, "theirs"));
  assert.equal(feed.read(ours, position, 5), null);
});

test("those who wait for the end of a job are woken by it alone", () => {
  const { feed, commit } = feedOf();
  const woken: string[] = [];
  feed.onEnd("a", () => woken.push("a"));
  const stop = feed.onEnd("a", () => woken.push("not any more"));
  stop();
  feed.onEnd("b", () => woken.push("b"));
  commit(change(ours, "a", { status: "active" }), change(ours, "c", { status: "completed" }));
  assert.deepEqual(woken, []);
  commit(change(ours, "a", { status: "failed" }));
  commit(change(ours, "a", { status: "completed" }));
  assert.deepEqual(woken, ["a"]);
});

test("a closed feed wakes everyone a last time and hears no more", () => {
  const { feed, isSubscribed } = feedOf();
  const woken: string[] = [];
  feed.listen(ours, () => woken.push(`listener, closed: ${feed.closed}`));
  feed.onEnd("a", () => woken.push("waiter"));
  feed.close();
  assert.deepEqual(woken.sort(), ["listener, closed: true", "waiter"]);
  assert.equal(isSubscribed(), false);
});

test("two feeds have different marks, so that a place in one is none in the other", () => {
  assert.notEqual(feedOf().feed.boot, feedOf().feed.boot);
});
