/** The built executable, in an empty folder and with nothing on the path, does the main job. Needs `npm run build:sea`. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { copyFileSync, mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { temporaryFolder } from "../support/app.ts";
import { startProcess, type TestProcess } from "../support/process.ts";
import { startTarget, type Target } from "../support/target.ts";

const BUILT = fileURLToPath(new URL("../../dist/errand", import.meta.url));

describe("the executable", () => {
  const folder = temporaryFolder();
  const errand = join(folder, "errand");
  const data = join(folder, "data");
  let target: Target;
  const started: TestProcess[] = [];

  before(async () => {
    // Away from the sources and their node_modules.
    copyFileSync(BUILT, errand);
    mkdirSync(data);
    target = await startTarget(() => ({ body: `{"ok":true}` }));
  });
  after(async () => {
    for (const service of started) await service.cleanUp();
    await target.close();
    rmSync(folder, { recursive: true, force: true });
  });

  async function start(): Promise<TestProcess> {
    const service = await startProcess({
      folder: data,
      command: [errand],
      cwd: folder,
      onlyEnv: { PATH: "" },
    });
    started.push(service);
    return service;
  }

  async function run(service: TestProcess, payload: unknown) {
    const { body: created } = await service.call("POST", "/v1/jobs", { url: target.url, payload });
    const { body: job } = await service.call("GET", `/v1/jobs/${created.id}?wait=30s`);
    assert.deepEqual([job.status, job.response_code, job.response_body], ["completed", 200, { ok: true }]);
    return job;
  }

  test("enqueues, delivers and answers, and does so again on the same folder", async () => {
    const first = await start();
    const job = await run(first, { n: 1 });
    assert.equal(target.received[0]?.body, `{"n":1}`);
    assert.match(target.received[0]?.headers["webhook-signature"]?.toString() ?? "", /^v1,/);
    assert.equal(await first.stop(), 0);

    const second = await start();
    const { body: kept } = await second.call("GET", `/v1/jobs/${job.id}`);
    assert.deepEqual([kept.status, kept.payload], ["completed", { n: 1 }]);
    await run(second, { n: 2 });
    await second.kill();

    const third = await start();
    await run(third, { n: 3 });
    assert.equal(await third.stop(), 0);
  });

  test("prints the licences of all that it holds", () => {
    const { stdout } = spawnSync(errand, ["licenses"], { env: { PATH: "" }, encoding: "utf8" });
    const named = new Set(
      [...stdout.matchAll(/^(\S+) \d+\.\d+\.\d+: \S+\n\n(?=\S)/gm)].map(([, name]) => name),
    );
    for (const name of ["errand", "better-sqlite3", "drizzle-orm", "hono", "undici", "valibot"])
      assert.ok(named.has(name), name);
    assert.match(stdout, /^node-linux-\w+ .*\n\nNode\.js is licensed/m);
  });

  test("says in one line what is wrong with a setting", () => {
    const { status, stderr } = spawnSync(errand, [], {
      cwd: folder,
      env: { PATH: "", ERRAND_PORT: "many" },
      encoding: "utf8",
    });
    assert.equal(status, 2);
    assert.match(stderr, /^errand: .*ERRAND_PORT.*\n$/);
  });
});
