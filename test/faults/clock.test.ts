/** A real process whose wall clock jumps under libfaketime: no due time fires twice, and none is lost. */
import assert from "node:assert/strict";
import { globSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { startProcess, type TestProcess } from "../support/process.ts";
import { startTarget, type Target } from "../support/target.ts";

const MINUTE = 60_000;
/** From the Debian package `faketime`. */
const [LIBRARY] = globSync("/usr/lib/*/faketime/libfaketime.so.1");

test("forward, backward, suspended and restarted in the second of a due time", async (t) => {
  assert.ok(LIBRARY !== undefined, "this test needs libfaketime: apt-get install faketime");
  const folder = mkdtempSync(join(tmpdir(), "errand-clock-"));
  const file = join(folder, "offset");
  let offsetMs = 0;
  const setWall = (ms: number) => {
    offsetMs = Math.round(ms - Date.now());
    writeFileSync(file, `${offsetMs < 0 ? "-" : "+"}${(Math.abs(offsetMs) / 1_000).toFixed(3)}`);
  };
  const env = {
    LD_PRELOAD: LIBRARY,
    FAKETIME_TIMESTAMP_FILE: file,
    FAKETIME_NO_CACHE: "1",
    FAKETIME_DONT_FAKE_MONOTONIC: "1",
  };
  const noon = Math.floor(Date.now() / MINUTE) * MINUTE;
  const minute = (n: number, ms = 0) => noon + n * MINUTE + ms;

  const target = await startTarget();
  setWall(minute(0, 57_000));
  let app: TestProcess = await startProcess({ env });
  t.after(async () => {
    await app.cleanUp();
    await target.close();
    rmSync(folder, { recursive: true, force: true });
  });
  const create = async (): Promise<string> => {
    const body = { cron_expr: "* * * * *", url: target.url, on_missed: "all" };
    const created = await app.call("POST", "/v1/schedules", body);
    assert.equal(created.status, 201, created.text);
    return created.body["id"];
  };
  const id = await create();
  await firings(target, id, 1);

  // Ten minutes forward: a downtime. Every due time in it is made up for.
  setWall(minute(11, 30_000));
  await firings(target, id, 11);

  // Six minutes back, to before a time that has fired. Another schedule shows that it has passed again.
  setWall(minute(5, 58_000));
  const witness = await create();
  await firings(target, witness, 1);
  assert.equal(of(target, id).length, 11);

  // Suspended for three minutes past all that was.
  process.kill(app.pid, "SIGSTOP");
  setWall(minute(14, 30_000));
  process.kill(app.pid, "SIGCONT");
  await firings(target, id, 14);

  // Killed as the job of a due time goes out, and started again within its second.
  setWall(minute(14, 58_500));
  await firings(target, id, 15);
  await app.kill();
  setWall(minute(15, 100));
  app = await startProcess({ folder: app.folder, env });
  setWall(minute(15, 58_500));
  await firings(target, id, 16);

  for (const schedule of [id, witness]) {
    const ledger = await app.call("GET", `/v1/schedules/${schedule}/occurrences?limit=100`);
    const times: number[] = ledger.body["data"]
      .map((line: any) => Date.parse(line.scheduled_for))
      .toReversed();
    const first = minute(schedule === id ? 1 : 6);
    assert.deepEqual(
      times,
      times.map((_, i) => first + i * MINUTE),
      "one line for each due time",
    );
    const jobs = await app.call("GET", `/v1/jobs?schedule_id=${schedule}&limit=100`);
    const made: string[] = jobs.body["data"].map((job: any) => job.scheduled_for);
    assert.equal(new Set(made).size, made.length, "no due time made two jobs");
    assert.equal(made.length, times.length, "and each made one");
  }
});

/** The jobs of a schedule that have reached the target. One killed in between may come twice, under the same id. */
function of(target: Target, scheduleId: string): string[] {
  const ids = target.received.filter(({ headers }) => headers["errand-schedule-id"] === scheduleId);
  return [...new Set(ids.map(({ headers }) => String(headers["errand-job-id"])))];
}

async function firings(target: Target, scheduleId: string, count: number): Promise<void> {
  while (of(target, scheduleId).length < count) await target.request(target.received.length + 1);
}
