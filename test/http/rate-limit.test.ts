/** The rate limit of the API: GCRA per account and mode, with the headers of draft-ietf-httpapi-ratelimit-headers. */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { addAccount } from "../support/accounts.ts";
import { startTestApp, type TestApp } from "../support/app.ts";
import { VirtualClock } from "../support/clock.ts";

describe("rate limit", () => {
  const clock = new VirtualClock();
  let app: TestApp;
  before(async () => {
    app = await startTestApp({ clock, config: { rateLimit: 5 } });
  });
  after(() => app.stop());

  const call = (key = app.key) =>
    app.call("GET", "/v1/account", undefined, { authorization: `Bearer ${key}` });

  test("the burst is twice the rate; one more is 429 with all three headers; it fills up at the rate", async () => {
    for (let left = 9; left >= 0; left--) {
      const { status, headers } = await call();
      assert.equal(status, 200);
      assert.equal(headers.get("ratelimit-policy"), `"default";q=10;w=2`);
      assert.match(headers.get("ratelimit") ?? "", new RegExp(`^"default";r=${left};t=[12]$`));
    }
    const refused = await call();
    assert.equal(refused.status, 429);
    assert.equal(refused.body["code"], "rate_limited");
    assert.equal(refused.headers.get("retry-after"), "1");
    assert.match(refused.headers.get("ratelimit") ?? "", /^"default";r=0;t=2$/);
    assert.ok(refused.headers.has("ratelimit-policy"));
    await clock.advance(199);
    assert.equal((await call()).status, 429);
    await clock.advance(1);
    assert.equal((await call()).status, 200);
    assert.equal((await call()).status, 429);
    await clock.advance("2s");
    for (let i = 0; i < 10; i++) assert.equal((await call()).status, 200);
    const again = await call();
    assert.deepEqual([again.status, again.headers.get("ratelimit")], [429, `"default";r=0;t=2`]);
  });

  test("each account and each mode has its own; what needs no key has none", async () => {
    const { test, live } = await addAccount(app.folder, "Second");
    for (let i = 0; i < 20; i++) await call();
    assert.equal((await call()).status, 429);
    for (let i = 0; i < 20; i++) await call(test);
    assert.equal((await call(test)).status, 429);
    assert.equal((await call(live)).status, 200);
    for (let i = 0; i < 30; i++) assert.equal((await app.call("GET", "/livez")).status, 200);
    assert.equal((await call("errand_test_x")).status, 401);
  });

  test("0 switches it off", async () => {
    const free = await startTestApp({ config: { rateLimit: 0 } });
    const answers = await Promise.all(Array.from({ length: 100 }, () => free.call("GET", "/v1/account")));
    assert.ok(answers.every(({ status }) => status === 200));
    assert.equal(answers[0]!.headers.get("ratelimit"), null);
    assert.equal(answers[0]!.body["limits"].requests_per_second, null);
    await free.stop();
  });
});
