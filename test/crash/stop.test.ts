/** SIGTERM drains and exits 0; a second one stops at once; a second service on the folder is refused. */
import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, type TestContext, test } from "node:test";
import { temporaryFolder } from "../support/app.ts";
import { BUNDLE, startProcess } from "../support/process.ts";
import { gate, startTarget } from "../support/target.ts";

async function held(t: TestContext) {
  const { wait, open } = gate();
  const target = await startTarget((_, count) => (count === 1 ? { wait } : {}));
  t.after(async () => {
    open();
    await target.close();
  });
  return { target, open };
}

/** A service whose one attempt is under way at a target that holds its answer. */
async function busy(t: TestContext, { env, job }: { env?: Record<string, string>; job?: object } = {}) {
  const folder = temporaryFolder();
  const { target, open } = await held(t);
  const service = await startProcess({ folder, ...(env === undefined ? {} : { env }) });
  t.after(() => service.cleanUp());
  const { body } = await service.call("POST", "/v1/jobs", { url: target.url, ...job });
  await target.request(1);
  return { folder, target, open, service, id: body.id as string };
}

describe("SIGTERM", () => {
  test("waits for what is under way, stores it, and exits 0", async (t) => {
    const { folder, target, open, service, id } = await busy(t);
    const stopped = service.stop();
    await service.printed(/"msg":"stopping/);
    open();
    assert.equal(await stopped, 0);

    const again = await startProcess({ folder });
    t.after(() => again.cleanUp());
    const { body } = await again.call("GET", `/v1/jobs/${id}`);
    assert.deepEqual([body.status, body.attempts], ["completed", 1]);
    assert.equal(target.received.length, 1);
  });

  test("answers while it drains: 503 with Retry-After, alive but not ready", async (t) => {
    const { open, service, id } = await busy(t);
    const stopped = service.stop();
    await service.printed(/"msg":"stopping/);

    const refused = await service.call("POST", "/v1/jobs", { url: "http://127.0.0.1:9/" });
    assert.deepEqual([refused.status, refused.body.code], [503, "unavailable"]);
    assert.ok(Number(refused.headers.get("retry-after")) > 0);
    assert.equal((await service.call("GET", `/v1/jobs/${id}`)).status, 503);
    assert.equal((await service.call("GET", "/livez")).status, 200);
    const ready = await service.call("GET", "/readyz");
    assert.deepEqual([ready.status, ready.body], [503, { status: "not_ready", reason: "stopping" }]);

    open();
    assert.equal(await stopped, 0);
  });

  test("puts back what takes longer than the shutdown timeout, and exits 0", async (t) => {
    const { folder, service, id } = await busy(t, {
      env: { ERRAND_SHUTDOWN_TIMEOUT: "1s" },
      job: { max_attempts: 1 },
    });
    assert.equal(await service.stop(), 0);

    const again = await startProcess({ folder });
    t.after(() => again.cleanUp());
    const { body } = await again.call("GET", `/v1/jobs/${id}?wait=30s`);
    assert.deepEqual([body.status, body.attempts], ["completed", 2]);
  });

  test("twice stops at once, and the next start sends again", async (t) => {
    const { folder, service, id } = await busy(t);
    const stopped = service.stop();
    await service.printed(/"msg":"stopping/);
    assert.notEqual(await service.stop(), 0);
    await stopped;

    const again = await startProcess({ folder });
    t.after(() => again.cleanUp());
    assert.equal((await again.call("GET", `/v1/jobs/${id}?wait=30s`)).body.status, "completed");
  });
});

describe("the data folder", () => {
  test("takes one service; a second is refused with one line, and the first is not harmed", async (t) => {
    const service = await startProcess();
    t.after(() => service.cleanUp());
    const before = readFileSync(join(service.folder, "test-key"), "utf8");
    await assert.rejects(startProcess({ folder: service.folder }), (error: Error) => {
      assert.match(
        error.message,
        /ended with 1 .*\n.*errand: another Errand is running on the data folder .*: stop it first, .*ERRAND_DATA_DIR\n$/,
      );
      return true;
    });
    assert.equal((await service.call("GET", "/v1/jobs")).status, 200);
    assert.equal(readFileSync(join(service.folder, "test-key"), "utf8"), before);
  });

  test("is free again after a kill -9", async (t) => {
    const first = await startProcess();
    t.after(() => first.cleanUp());
    await first.kill();
    const second = await startProcess({ folder: first.folder });
    t.after(() => second.cleanUp());
    assert.equal((await second.call("GET", "/v1/jobs")).status, 200);
  });
});

test("a start that fails says why in one line and exits", async (t) => {
  const folder = temporaryFolder();
  const first = await startProcess({ folder });
  t.after(() => first.cleanUp());
  await first.stop();
  const child = spawn(process.execPath, [join(import.meta.dirname, "../../dist/errand.cjs")], {
    env: {
      ...process.env,
      ERRAND_DATA_DIR: folder,
      ERRAND_PORT: "0",
      ERRAND_SECRET_KEY: "another secret key that is long enough",
    },
  });
  let printed = "";
  child.stderr.on("data", (chunk: Buffer) => (printed += chunk.toString()));
  const [code] = await once(child, "close");
  assert.equal(code, 1);
  assert.match(printed, /^errand: the secrets in .* were sealed with another secret key.*\n$/);
});

test("a folder that cannot be made is said to be so, also where Node would try for ever", () => {
  const deleted = temporaryFolder();
  const service = `"${process.execPath}" "${BUNDLE}" --port 0`;
  for (const [command, named] of [
    [`exec ${service} --data-dir /proc/errand/data`, "/proc/errand/data"],
    [`cd "${deleted}" && rmdir "${deleted}" && exec ${service}`, "./errand-data"],
  ] as const) {
    const { status, stderr } = spawnSync("sh", ["-c", command], { encoding: "utf8", timeout: 30_000 });
    assert.equal(status, 1, stderr);
    assert.ok(stderr.startsWith(`errand: the data folder ${named} cannot be used (ENOENT)`), stderr);
  }
});
