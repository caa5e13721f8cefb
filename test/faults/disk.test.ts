/** A disk that fails under load: no false acknowledgement, reads go on, nothing is sent that cannot be written down first. */
import assert from "node:assert/strict";
import { describe, type TestContext, test } from "node:test";
import { startProcess } from "../support/process.ts";
import { startTarget } from "../support/target.ts";
import { type Fault, failingCalls, mountSmallDisk } from "./failing-disk.ts";
import { missing, startLoad } from "./load.ts";
import { within } from "./within.ts";

const SYNCS = "fdatasync,fsync";
const WRITES = "pwrite64,ftruncate";
const REFUSED_CREATES = 30;
const DUE_JOBS = 20;
const DISK_BYTES = 16 * 1024 * 1024;

interface Options {
  /** What was written before may still be overwritten: some creates get through before the disk refuses. */
  readonly fillsSlowly?: boolean;
  readonly folder?: string;
}

/** Load, then the fault, then its end; every promise is checked on the way. */
async function outlives(t: TestContext, fault: Fault, { fillsSlowly = false, folder }: Options = {}) {
  const target = await startTarget();
  const later = await startTarget();
  let service = await startProcess(folder === undefined ? {} : { folder });
  t.after(() => Promise.all([service.cleanUp(), target.close(), later.close()]));
  const create = (fields = {}) =>
    service.call("POST", "/v1/jobs", { url: target.url, payload: "x".repeat(1_000), ...fields });

  const load = startLoad(service, 4, () => ({ url: target.url }), 5);
  const acknowledged: string[] = [];
  await load.reached(50);
  const due = await Promise.all(
    Array.from({ length: DUE_JOBS }, () => create({ url: later.url, delay: "3s" })),
  );
  for (const { status, body } of due) {
    assert.equal(status, 201);
    acknowledged.push(body["id"]);
  }
  const dueAt = Date.parse(due.at(-1)!.body["run_at"]);

  const end = await fault(service);
  try {
    // The load goes on meanwhile.
    for (let refused = 0; refused < REFUSED_CREATES; ) {
      const { status, headers, body } = await create();
      if (status === 201 && fillsSlowly && refused === 0) {
        acknowledged.push(body["id"]);
        continue;
      }
      assert.equal(status, 503, "a create is refused");
      assert.equal(body["code"], "unavailable");
      assert.ok(Number(headers.get("retry-after")) > 0);
      refused += 1;
    }
    assert.equal((await service.call("GET", `/v1/jobs/${acknowledged[0]}`)).status, 200, "reads go on");
    assert.equal((await service.call("GET", "/v1/jobs")).status, 200);
    assert.equal((await service.call("GET", "/livez")).status, 200);
    assert.equal((await service.call("GET", "/readyz")).status, 503);
    const before = target.received.length;
    await new Promise((resolve) => setTimeout(resolve, dueAt + 1_000 - Date.now()));
    assert.equal(later.received.length, 0, "nothing is sent that cannot be claimed");
    assert.equal(target.received.length, before);
  } finally {
    await end();
  }

  await within("10 s", later.request(DUE_JOBS));
  assert.equal((await create()).status, 201);
  const [working] = acknowledged;
  const done = await service.call("GET", `/v1/jobs/${working}?wait=10s`);
  assert.equal(done.body["status"], "completed");
  await load.stop();
  assert.ok([...load.statuses.keys()].every((status) => status === 201 || status === 503));
  acknowledged.push(...load.acknowledged);
  await service.kill();
  service = await startProcess({ folder: service.folder });
  assert.deepEqual(await missing(service, acknowledged), []);
  t.diagnostic(`${acknowledged.length} acknowledged, ${load.statuses.get(503) ?? 0} of the load refused`);
}

describe("a disk that fails under load", () => {
  test("syncs that fail", (t) => outlives(t, failingCalls(SYNCS, "error=EIO")));
  test("writes that fail", (t) => outlives(t, failingCalls(WRITES, "error=EIO")));
  test("a disk that became read-only", (t) => outlives(t, failingCalls(`${SYNCS},${WRITES}`, "error=EROFS")));

  test("a full disk", async (t) => {
    const disk = mountSmallDisk(DISK_BYTES);
    if (disk === null) return t.skip("this user may not mount a filesystem");
    t.after(() => disk.remove());
    await outlives(t, disk.fill, { fillsSlowly: true, folder: disk.folder });
  });

  test("control: a disk that lies about its syncs is seen to be acknowledged", async (t) => {
    await assert.rejects(outlives(t, failingCalls(SYNCS, "retval=0")), /a create is refused/);
  });
});
