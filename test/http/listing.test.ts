/** Lists of jobs: every filter, cursors that stay right while jobs come, and what items show and leave out. */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { type Answer, startTestApp, type TestApp } from "../support/app.ts";
import { VirtualClock } from "../support/clock.ts";
import { startTarget, type Target } from "../support/target.ts";

describe("listing jobs", () => {
  const clock = new VirtualClock("2026-03-01T00:00:00.000Z");
  let app: TestApp;
  let target: Target;
  const ids: Record<string, string> = {};
  let scheduleId = "";

  const nameOf = (id: string) => Object.entries(ids).find(([, known]) => known === id)?.[0];
  const list = async (query: string) => {
    const { status, body, text } = await app.call("GET", `/v1/jobs${query}`);
    assert.equal(status, 200, text);
    return body["data"].map(({ id }: { id: string }) => nameOf(id)) as (string | undefined)[];
  };

  before(async () => {
    app = await startTestApp({ clock });
    target = await startTarget(({ path }) => ({ status: path === "/fails" ? 500 : 200 }));
    const add = async (name: string, fields: Record<string, unknown>) => {
      ids[name] = (await app.createJob(fields))["id"];
      await clock.advance("1m");
    };
    const base = target.url.replace("/hook", "");
    await add("done", { url: `${base}/done`, tags: ["red", "blue"] });
    await add("failed", { url: `${base}/fails`, max_attempts: 1, tags: ["red"] });
    await add("delayed", { url: `${base}/later?x=%25`, delay: "300d", queue: "mail" });
    await add("waiting", { url: `${base}/asks`, requires_approval: true, queue: "mail" });
    await add("cancelled", { url: `${base}/never`, delay: "1h" });
    await add("piped", { steps: [{ url: `${base}/first` }, { url: `${base}/second`, delay: "300d" }] });
    await app.call("POST", `/v1/jobs/${ids["cancelled"]}/cancel`);
    await app.ended(ids["done"]!);
    await app.ended(ids["failed"]!);
    const made = await app.call("POST", "/v1/schedules", {
      url: `${base}/scheduled`,
      cron_expr: "*/10 * * * *",
    });
    scheduleId = made.body["id"];
    const sent = target.request(4);
    await clock.leap("4m");
    await sent;
    const { body } = await app.call("GET", `/v1/jobs?schedule_id=${scheduleId}`);
    ids["scheduled"] = body["data"][0].id;
    await app.ended(ids["scheduled"]!);
  });
  after(async () => {
    await app.stop();
    await target.close();
  });

  test("empty fields read as null; only schedule_id is left out", async () => {
    const { body } = await app.call("GET", "/v1/jobs");
    const known = Object.keys(body["data"][0]);
    assert.ok(known.includes("schedule_id"), "the newest was made by a schedule");
    const others = known.filter((name) => name !== "schedule_id");
    for (const item of body["data"].slice(1)) {
      assert.deepEqual(Object.keys(item), others);
      assert.equal(item.scheduled_for, null);
      const job = (await app.call("GET", `/v1/jobs/${item.id}`)).body;
      assert.equal(job["scheduled_for"], null);
      assert.ok(!("schedule_id" in job));
    }
  });

  test("each filter, alone and together", async () => {
    const table: [query: string, names: string[]][] = [
      ["", ["scheduled", "piped", "cancelled", "waiting", "delayed", "failed", "done"]],
      ["?status=completed", ["scheduled", "done"]],
      ["?status=failed", ["failed"]],
      ["?status=failed&status=cancelled", ["cancelled", "failed"]],
      ["?status=pending&status=awaiting_approval&status=pending", ["piped", "waiting", "delayed"]],
      ["?status=active", []],
      ["?queue=mail", ["waiting", "delayed"]],
      ["?queue=unknown", []],
      ["?tag=red", ["failed", "done"]],
      ["?tag=blue", ["done"]],
      ["?tag=re", []],
      [`?schedule_id=${scheduleId}`, ["scheduled"]],
      ["?schedule_id=sch_x", []],
      ["?url_contains=/fails", ["failed"]],
      ["?url_contains=/second", ["piped"]],
      ["?url_contains=%25", ["delayed"]],
      ["?url_contains=_", []],
      ["?created_after=2026-03-01T00:03:00Z&created_before=2026-03-01T00:05:00Z", ["cancelled"]],
      ["?created_before=2026-03-01T00:01:00Z", ["done"]],
      ["?created_before=2026-03-01T02:01:00.001%2B02:00", ["failed", "done"]],
      ["?queue=mail&status=pending", ["delayed"]],
      ["?tag=red&status=completed&url_contains=done", ["done"]],
    ];
    for (const [query, names] of table) assert.deepEqual(await list(query), names, query);
  });

  test("items leave out bodies and headers; the job has them, secrets masked", async () => {
    const secret = await app.createJob({
      url: target.url,
      delay: "1h",
      payload: { a: 1 },
      headers: {
        Authorization: "Bearer s3cret-1",
        Cookie: "s3cret-2",
        "X-Api-Key": "s3cret-3",
        "x-plain": "seen",
      },
      callback_url: target.url,
    });
    const listed = await app.call("GET", "/v1/jobs?limit=1");
    const [item] = listed.body["data"];
    assert.equal(item.id, secret["id"]);
    for (const name of ["payload", "headers", "response_headers", "response_body"])
      assert.ok(!(name in item), name);
    assert.deepEqual(item.actions, ["cancel"]);
    assert.equal(item.retries_remaining, 2);
    const read = await app.call("GET", `/v1/jobs/${secret["id"]}`);
    assert.deepEqual(read.body["headers"], {
      Authorization: "***",
      Cookie: "***",
      "X-Api-Key": "***",
      "x-plain": "seen",
    });
    const cancelled = await app.call("POST", `/v1/jobs/${secret["id"]}/cancel`);
    for (const { text } of [listed, read, cancelled]) assert.ok(!text.includes("s3cret"));
  });

  test("a listing under concurrent inserts neither skips nor repeats", async () => {
    const fields = { url: "http://127.0.0.1:9/", delay: "1h", queue: "cursor" };
    const wanted: string[] = [];
    for (let i = 0; i < 50; i++) wanted.unshift((await app.createJob(fields))["id"]);
    for (const filter of ["queue=cursor", "queue=cursor&status=pending&status=cancelled"]) {
      const seen: string[] = [];
      let cursor: string | null = null;
      do {
        const path: string = `/v1/jobs?${filter}&limit=7${cursor === null ? "" : `&cursor=${cursor}`}`;
        const [page]: [Answer<any>, ...unknown[]] = await Promise.all([
          app.call("GET", path),
          ...Array.from({ length: 5 }, () => app.createJob(fields)),
        ]);
        assert.ok(page.body["data"].length <= 7);
        seen.push(...page.body["data"].map(({ id }: { id: string }) => id));
        cursor = page.body["next_cursor"];
      } while (cursor !== null);
      assert.equal(new Set(seen).size, seen.length);
      assert.deepEqual(seen.slice(-50), wanted);
    }
  });

  test("the last page has no cursor, a page that is just full neither", async () => {
    const fields = { url: "http://127.0.0.1:9/", delay: "1h", queue: "full" };
    for (let i = 0; i < 4; i++) await app.createJob(fields);
    const full = await app.call("GET", "/v1/jobs?queue=full&limit=4");
    assert.equal(full.body["data"].length, 4);
    assert.equal(full.body["next_cursor"], null);
    const part = await app.call("GET", "/v1/jobs?queue=full&limit=3");
    const rest = await app.call("GET", `/v1/jobs?queue=full&limit=3&cursor=${part.body["next_cursor"]}`);
    assert.equal(rest.body["data"].length, 1);
    assert.equal(rest.body["next_cursor"], null);
  });
});
