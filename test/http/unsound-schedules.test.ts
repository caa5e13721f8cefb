/** Schedules whose expression or zone was sound when they were stored, and is not any more: they can be read and mended. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { describe, test } from "node:test";
import Database from "better-sqlite3";
import { loadAddon } from "../../src/store/sqlite/native.ts";
import { startTestApp } from "../support/app.ts";
import { VirtualClock } from "../support/clock.ts";

const UNSOUND = [
  ["timezone", "Mars/Olympus"],
  ["cron_expr", "0 9 * * FUNDAY"],
] as const;

/** What an older Errand, or one with another time zone database, may have stored. */
function store(folder: string, id: string, column: string, value: string): void {
  const db = new Database(join(folder, "errand.db"), { nativeBinding: loadAddon("") });
  db.prepare(`UPDATE schedules SET ${column} = ? WHERE id = ?`).run(value, id);
  db.close();
}

for (const [field, value] of UNSOUND)
  describe(`a schedule whose ${field} is ${value}`, () => {
    test("is read, changed, paused and resumed, is invalid once it was due, and runs when it is mended", async (t) => {
      const clock = new VirtualClock("2026-03-01T00:00:00.000Z");
      const app = await startTestApp({ clock });
      t.after(() => app.stop());
      const sound = { cron_expr: "0 9 * * *", timezone: "UTC" };
      const made = await app.call("POST", "/v1/schedules", { ...sound, url: "http://127.0.0.1:9/" });
      const path = `/v1/schedules/${made.body["id"]}`;
      store(app.folder, made.body["id"], field, value);

      const read = await app.call("GET", path);
      assert.deepEqual([read.status, read.body[field], read.body["status"]], [200, value, "scheduled"]);
      assert.equal((await app.call("GET", "/v1/schedules")).status, 200);
      assert.deepEqual((await app.call("GET", `${path}/next`)).body, { data: [] });
      await clock.leap("10h");
      assert.equal((await app.call("GET", path)).body["status"], "invalid");
      const moved = await app.call("PATCH", path, { starts_at: "2026-03-02T00:00:00Z" });
      assert.deepEqual([moved.status, moved.body["status"]], [200, "invalid"]);
      assert.equal((await app.call("POST", `${path}/pause`)).body["status"], "paused");
      const resumed = await app.call("POST", `${path}/resume`);
      assert.deepEqual([resumed.status, resumed.body["status"]], [200, "invalid"]);
      const mended = await app.call("PATCH", path, { [field]: sound[field] });
      assert.equal(mended.body["next_run_at"], "2026-03-02T09:00:00.000Z");
      assert.deepEqual((await app.call("GET", "/v1/jobs")).body["data"], []);
    });
  });
