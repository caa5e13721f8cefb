/** Many readers of one account's events: each event is made once for all of them, and their number has an end. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { systemClock } from "../../src/base/clock.ts";
import { Feed } from "../../src/engine/events.ts";
import { eventOperations } from "../../src/operations/events.ts";
import { type Context, Stream } from "../../src/operations/operation.ts";
import type { Change } from "../../src/store/store.ts";

const tenant = { accountId: "acct_1", mode: "test" } as const;

function startFeed() {
  let tell: (changes: readonly Change[]) => void = () => {};
  const feed = new Feed({
    subscribe(listener) {
      tell = listener;
      return () => {};
    },
  });
  const context = (mode: "test" | "live") =>
    ({
      feed,
      clock: systemClock,
      principal: { tenant: { ...tenant, mode }, keyId: "key_1" },
    }) as unknown as Context;
  const open = async (mode: "test" | "live" = "test") => {
    const stream = await eventOperations[0]!.run(context(mode), {});
    assert.ok(stream instanceof Stream);
    return stream;
  };
  return { feed, open, tell: (change: Change) => tell([change]) };
}

test("all readers are given the same event, so that it is written once", async () => {
  const { open, tell } = startFeed();
  const [one, other] = [await open(), await open()];
  tell({
    kind: "job",
    tenant,
    at: 0,
    jobId: "job_1",
    status: "pending",
    previous: null,
    queue: "default",
    scheduleId: null,
  });
  const [item] = one.read(10)!;
  assert.equal(item?.type, "job.created");
  assert.equal(other.read(10)?.[0], item);
});

test("an account has at most 200 streams in each mode at a time", async () => {
  const { open } = startFeed();
  const stops = [];
  for (let i = 0; i < 200; i += 1) stops.push((await open()).listen(() => {}));
  await assert.rejects(open(), { code: "rate_limited", message: /200 event streams/ });
  (await open("live")).listen(() => {});
  stops[0]!();
  await open();
});
