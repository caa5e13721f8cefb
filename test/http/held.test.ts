/** What a restore has put on hold: changes to a schedule do not set off what the hold is there to prevent. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { systemClock } from "../../src/base/clock.ts";
import { secretBox } from "../../src/base/secret-box.ts";
import { secretKey } from "../../src/first-boot.ts";
import { openStore } from "../../src/store/sqlite/open.ts";
import { startTestApp } from "../support/app.ts";

const DAY = 86_400_000;

test("while the service is held, the due times of a schedule that is paused or changed are missed", async (t) => {
  // Far from a full hour, so that it does not matter how long the test takes.
  let ahead = Date.parse("2026-01-05T00:10:00Z") - systemClock.now();
  const clock = { ...systemClock, now: () => systemClock.now() + ahead };
  const first = await startTestApp({ clock });
  const schedules: string[] = [];
  for (const onMissed of ["once", "all"]) {
    const fields = { cron_expr: "0 * * * *", url: "http://127.0.0.1:9/", on_missed: onMissed };
    schedules.push((await first.call("POST", "/v1/schedules", fields)).body["id"]);
  }
  await first.stop({ keep: true });
  const box = secretBox(secretKey(first.folder, null));
  const store = openStore({ folder: first.folder, box, clock });
  await store.maintenance.hold(true);
  await store.close();
  ahead += DAY;

  const app = await startTestApp({ clock, folder: first.folder });
  t.after(() => app.stop());
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
