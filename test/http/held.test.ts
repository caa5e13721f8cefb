/** What a restore has put on hold: changes to a schedule do not set off what the hold is there to prevent. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import Database from "better-sqlite3";
import { systemClock } from "../../src/base/clock.ts";
import { secretBox } from "../../src/base/secret-box.ts";
import { secretKey } from "../../src/first-boot.ts";
import { loadAddon } from "../../src/store/sqlite/native.ts";
import { openStore } from "../../src/store/sqlite/open.ts";
import { startTestApp, type TestApp } from "../support/app.ts";

const DAY = 86_400_000;

/** A service that is held, a day after schedules of these fields were made; and their ids. */
async function startHeld(
  t: TestContext,
  ...fields: object[]
): Promise<{ app: TestApp; schedules: string[] }> {
  // Far from a full hour, so that it does not matter how long the test takes.
  let ahead = Date.parse("2026-01-05T00:10:00Z") - systemClock.now();
  const clock = { ...systemClock, now: () => systemClock.now() + ahead };
  const first = await startTestApp({ clock });
  const schedules: string[] = [];
  for (const more of fields)
    schedules.push((await first.call("POST", "/v1/schedules", { ...HOURLY, ...more })).body["id"]);
  await first.stop({ keep: true });
  const box = secretBox(secretKey(first.folder, null));
  const store = openStore({ folder: first.folder, box, clock });
  await store.maintenance.hold(true);
  await store.close();
  ahead += DAY;
  const app = await startTestApp({ clock, folder: first.folder });
  t.after(() => app.stop());
  return { app, schedules };
}

const HOURLY = { cron_expr: "0 * * * *", url: "http://127.0.0.1:9/" };

test("while the service is held, the due times of a schedule that is paused or changed are missed", async (t) => {
  const { app, schedules } = await startHeld(t, { on_missed: "once" }, { on_missed: "all" });
  const [paused, changed] = schedules;
  assert.equal((await app.call("POST", `/v1/schedules/${paused}/pause`)).status, 200);
  assert.equal(
    (await app.call("PATCH", `/v1/schedules/${changed}`, { cron_expr: "30 * * * *" })).status,
    200,
  );
  assert.deepEqual((await app.call("GET", "/v1/jobs")).body["data"], []);
  for (const id of schedules) {
    const { data } = (await app.call("GET", `/v1/schedules/${id}/occurrences?limit=100`)).body;
    assert.equal(data.length, 24);
    assert.ok(data.every((line: { outcome: string }) => line.outcome === "missed"));
  }
});

test("what changes nothing while the service is held leaves the due times to be decided later", async (t) => {
  const { app, schedules } = await startHeld(t, { name: "same" }, {}, {});
  const [same, refused, resumed] = schedules;
  const replaced = await app.call("PUT", "/v1/schedules/by-name/same", HOURLY);
  assert.equal(replaced.body["change"], "unchanged");
  assert.equal(replaced.body["id"], same);
  const wrong = { starts_at: "2026-02-01T00:00:00Z", ends_at: "2026-01-01T00:00:00Z" };
  assert.equal((await app.call("PATCH", `/v1/schedules/${refused}`, wrong)).status, 422);
  assert.equal((await app.call("POST", `/v1/schedules/${resumed}/resume`)).status, 200);
  for (const id of schedules) {
    assert.deepEqual((await app.call("GET", `/v1/schedules/${id}/occurrences`)).body["data"], []);
    const { body } = await app.call("GET", `/v1/schedules/${id}`);
    assert.equal(body["next_run_at"], "2026-01-05T01:00:00.000Z");
  }
});

test("a schedule that was due in a zone that is not known here any more can be mended", async (t) => {
  const { app, schedules } = await startHeld(t, {}, {});
  const db = new Database(join(app.folder, "errand.db"), { nativeBinding: loadAddon("") });
  db.exec("UPDATE schedules SET timezone = 'Mars/Olympus'");
  db.close();
  const [mended, paused] = schedules;
  const { status, body } = await app.call("PATCH", `/v1/schedules/${mended}`, { timezone: "UTC" });
  assert.deepEqual([status, body["status"]], [200, "scheduled"]);
  assert.equal((await app.call("POST", `/v1/schedules/${paused}/pause`)).status, 200);
  assert.deepEqual((await app.call("GET", "/v1/jobs")).body["data"], []);
});
