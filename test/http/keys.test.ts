/** Keys, signing secrets, usage and the account: what an administrator of one account works with. */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { Webhook } from "standardwebhooks";
import { addAccount } from "../support/accounts.ts";
import { startTestApp, type TestApp } from "../support/app.ts";
import { VirtualClock } from "../support/clock.ts";
import { readEvents } from "../support/events.ts";
import { hasValidChecksum } from "../support/keys.ts";
import { startTarget } from "../support/target.ts";

const as = (key: string) => ({ authorization: `Bearer ${key}` });

describe("keys", () => {
  let app: TestApp;
  before(async () => {
    app = await startTestApp();
  });
  after(() => app.stop());

  test("a new key is shown once, works at once, and can do what its scopes say", async () => {
    const made = await app.call("POST", "/v1/keys", { name: "deploy", scopes: ["write", "read"] });
    assert.equal(made.status, 201);
    const { key, ...rest } = made.body;
    assert.match(key, /^errand_test_[0-9A-Za-z]{36}$/);
    assert.ok(hasValidChecksum(key));
    assert.deepEqual(rest["scopes"], ["read", "write"]);
    assert.equal(rest["mode"], "test");
    const account = await app.call("GET", "/v1/account", undefined, as(key));
    assert.deepEqual(account.body["key"], { id: rest["id"], name: "deploy" });
    assert.deepEqual(account.body["scopes"], ["read", "write"]);
    const listed = await app.call("GET", "/v1/keys");
    assert.deepEqual(listed.body["data"][0], rest);
    assert.ok(!listed.text.includes(key));
  });

  test("a key is of the caller's own mode", async () => {
    const { live } = await addAccount(app.folder, "Second");
    const made = await app.call("POST", "/v1/keys", { name: "live", scopes: ["read"] }, as(live));
    assert.match(made.body["key"], /^errand_live_/);
    assert.equal(made.body["mode"], "live");
    const listed = await app.call("GET", "/v1/keys", undefined, as(live));
    assert.equal(listed.body["data"].length, 2);
  });

  test("a revoked key opens nothing from that answer on, also under load", async () => {
    const { body } = await app.call("POST", "/v1/keys", { name: "gone", scopes: ["read", "admin"] });
    const read = () => app.call("GET", "/v1/jobs", undefined, as(body["key"]));
    assert.deepEqual(
      new Set((await Promise.all([read(), read(), read()])).map(({ status }) => status)),
      new Set([200]),
    );
    const revoked = await app.call("DELETE", `/v1/keys/${body["id"]}`);
    assert.equal(revoked.status, 204);
    assert.equal(revoked.text, "");
    for (const { status } of await Promise.all(Array.from({ length: 10 }, read))) assert.equal(status, 401);
    assert.equal((await app.call("DELETE", `/v1/keys/${body["id"]}`)).status, 404);
    assert.ok(!(await app.call("GET", "/v1/keys")).text.includes(body["id"]));
  });

  test("an event stream ends with its key, and those of other keys go on", async () => {
    const { body } = await app.call("POST", "/v1/keys", { name: "reader", scopes: ["read"] });
    const [revoked, other] = [await readEvents(app, { key: body["key"] }), await readEvents(app)];
    assert.equal((await app.call("DELETE", `/v1/keys/${body["id"]}`)).status, 204);
    await revoked.ended;
    const { id } = await app.createJob({ url: "http://127.0.0.1:9/", delay: "1h" });
    await other.until(({ data }) => data["job_id"] === id);
    other.close();
    assert.deepEqual(revoked.seen, []);
  });

  test("the list of keys has pages", async () => {
    for (let i = 0; i < 5; i++) await app.call("POST", "/v1/keys", { name: `page ${i}`, scopes: ["read"] });
    const first = await app.call("GET", "/v1/keys?limit=3");
    assert.deepEqual(
      first.body["data"].map(({ name }: { name: string }) => name),
      ["page 4", "page 3", "page 2"],
    );
    const second = await app.call("GET", `/v1/keys?limit=2&cursor=${first.body["next_cursor"]}`);
    assert.deepEqual(
      second.body["data"].map(({ name }: { name: string }) => name),
      ["page 1", "page 0"],
    );
    assert.equal((await app.call("GET", "/v1/keys?cursor=7")).status, 422);
  });
});

describe("signing secrets", () => {
  test("a rotation signs with both for the overlap, then with the new one alone", async () => {
    const clock = new VirtualClock(Date.now());
    const app = await startTestApp({ clock });
    const target = await startTarget();
    const before = (await app.call("GET", "/v1/signing-secrets")).body["data"];
    assert.equal(before.length, 1);
    assert.match(before[0].secret, /^whsec_[A-Za-z0-9+/]{43}=$/);
    assert.equal(before[0].expires_at, null);

    const rotated = await app.call("POST", "/v1/signing-secrets/rotate");
    assert.equal(rotated.status, 200);
    const [current, old] = rotated.body["data"];
    assert.equal(old.id, before[0].id);
    assert.equal(Date.parse(old.expires_at) - clock.now(), 86_400_000);
    assert.equal(current.expires_at, null);

    const sent = async () => {
      const { id } = await app.createJob({ url: target.url, payload: 1 });
      await app.ended(id);
      return target.received.at(-1)!;
    };
    const verifies = (secret: string, { body, headers }: { body: string; headers: object }) => {
      try {
        new Webhook(secret).verify(body, headers as Record<string, string>);
        return true;
      } catch {
        return false;
      }
    };
    const both = await sent();
    assert.equal(String(both.headers["webhook-signature"]).split(" ").length, 2);
    assert.ok(verifies(old.secret, both) && verifies(current.secret, both));

    clock.jump(Date.parse(old.expires_at));
    const [signature, ...more] = String((await sent()).headers["webhook-signature"]).split(" ");
    assert.ok(signature!.startsWith("v1,") && more.length === 0);
    assert.deepEqual(
      (await app.call("GET", "/v1/signing-secrets")).body["data"].map(({ id }: { id: string }) => id),
      [current.id],
    );

    const atOnce = await app.call("POST", "/v1/signing-secrets/rotate", { overlap: "0s" });
    assert.equal(atOnce.body["data"].length, 1);

    // Each secret that signs makes the header longer, and targets take headers of some length only.
    for (let i = 1; i < 50; i += 1) await app.call("POST", "/v1/signing-secrets/rotate", { overlap: "30d" });
    const tooMany = await app.call("POST", "/v1/signing-secrets/rotate", { overlap: "30d" });
    assert.equal(tooMany.status, 422);
    assert.deepEqual(
      tooMany.body["errors"].map((one: any) => one.pointer),
      ["/overlap"],
    );
    assert.equal((await app.call("GET", "/v1/signing-secrets")).body["data"].length, 50);
    const afterwards = await app.call("POST", "/v1/signing-secrets/rotate", { overlap: "0s" });
    assert.equal(afterwards.body["data"].length, 1);
    await app.stop();
    await target.close();
  });
});

describe("usage", () => {
  test("a pipeline is one job; retries, callbacks and deduplicated creates are none; by UTC day and month", async () => {
    const clock = new VirtualClock("2026-01-31T23:59:00.000Z");
    const app = await startTestApp({ clock });
    const target = await startTarget((_, count) => ({ status: count === 1 ? 500 : 200, body: "{}" }));
    const usage = async (month = "") => (await app.call("GET", `/v1/usage${month}`)).body;
    assert.deepEqual(await usage(), { month: "2026-01", mode: "test", jobs: 0, deliveries: 0, days: [] });

    const retried = await app.createJob({
      url: target.url,
      retry_delays: ["0s"],
      callback_url: target.url,
      dedupe_key: "a",
    });
    await app.ended(retried["id"]);
    await target.request(3);
    await app.call("POST", "/v1/jobs", { url: target.url, dedupe_key: "a" });
    const day = { day: "2026-01-31", jobs: 1, deliveries: 2 };
    assert.deepEqual((await usage())["days"], [day]);

    await clock.leap("2m");
    const piped = await app.createJob({ steps: [{ url: target.url }, { url: target.url }] });
    await app.ended(piped["id"]);
    const february = await usage();
    assert.deepEqual(february, {
      month: "2026-02",
      mode: "test",
      jobs: 1,
      deliveries: 2,
      days: [{ day: "2026-02-01", jobs: 1, deliveries: 2 }],
    });
    assert.deepEqual(await usage("?month=2026-01"), {
      month: "2026-01",
      mode: "test",
      jobs: 1,
      deliveries: 2,
      days: [day],
    });
    assert.equal((await usage("?month=2025-12"))["jobs"], 0);
    for (const month of ["2026-13", "2026-1", "2026", "", "2026-01-01"])
      assert.equal((await app.call("GET", `/v1/usage?month=${month}`)).status, 422, month);
    await app.stop();
    await target.close();
  });
});
