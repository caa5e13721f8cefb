/** What the service prints to may fill up, close or be a terminal that goes away: none of it stops a delivery. */
import assert from "node:assert/strict";
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { closeSync, openSync, rmSync } from "node:fs";
import type { Readable } from "node:stream";
import { type TestContext, test } from "node:test";
import { temporaryFolder } from "../support/app.ts";
import { BUNDLE, startProcess } from "../support/process.ts";
import { gate, startTarget } from "../support/target.ts";

const KEY = "errand_test_abcdefghijklmnopqrstuvwx";
const headers = { authorization: `Bearer ${KEY}`, "content-type": "application/json" };

/** A first start in a folder of its own, with these three streams. */
function firstStart(
  t: TestContext,
  stdio: ("ignore" | "pipe" | "inherit" | number)[],
  command = [process.execPath, BUNDLE],
) {
  const folder = temporaryFolder();
  const env = {
    ...process.env,
    ERRAND_DATA_DIR: folder,
    ERRAND_PORT: "0",
    ERRAND_TEST_KEY: KEY,
    ERRAND_LOG_FORMAT: "json",
  };
  const child = spawn(command[0] ?? "", command.slice(1), { env, stdio });
  t.after(async () => {
    if (child.exitCode === null && child.signalCode === null && child.kill("SIGKILL"))
      await once(child, "exit");
    rmSync(folder, { recursive: true, force: true });
  });
  return { child, folder };
}

/** What the first group of the pattern is, once it was printed. */
async function printed(from: Readable | null, pattern: RegExp): Promise<string> {
  let text = "";
  for await (const chunk of from ?? []) {
    text += String(chunk);
    const found = pattern.exec(text)?.[1];
    if (found !== undefined) return found;
  }
  throw new Error(`${pattern} was not printed, but\n${text}`);
}

async function create(port: string, url: string): Promise<string> {
  const body = JSON.stringify({ url });
  const response = await fetch(`http://127.0.0.1:${port}/v1/jobs`, { method: "POST", headers, body });
  assert.equal(response.status, 201);
  return ((await response.json()) as { id: string }).id;
}

async function stop(child: ChildProcess): Promise<number | null> {
  child.kill("SIGTERM");
  const [code] = (await once(child, "exit")) as [number | null];
  return code;
}

test("a log on a full disk is lost; the service starts, answers and stops", async (t) => {
  const full = openSync("/dev/full", "w");
  t.after(() => closeSync(full));
  const { child } = firstStart(t, ["ignore", full, "pipe"]);
  const port = await printed(child.stderr, /http:\/\/localhost:(\d+)/);
  await create(port, "http://127.0.0.1:9/");
  assert.equal(await stop(child), 0);
});

test("`errand 2>&1 | head -1`: a first start whose reader has left goes on without telling the key", async (t) => {
  const { child } = firstStart(t, ["ignore", "pipe", "pipe"]);
  child.stderr?.destroy();
  const port = await printed(child.stdout, /"port":(\d+)/);
  await create(port, "http://127.0.0.1:9/");
  assert.equal(await stop(child), 0);
});

test("without a terminal SIGHUP means nothing: `nohup errand &` outlives the shell", async (t) => {
  const service = await startProcess();
  t.after(() => service.cleanUp());
  process.kill(service.pid, "SIGHUP");
  process.kill(service.pid, "SIGHUP");
  assert.equal((await service.call("GET", "/v1/jobs")).status, 200);
  assert.equal(await service.stop(), 0);
});

test("a terminal that is closed stops it in order: what is under way is waited for and stored", async (t) => {
  if (spawnSync("script", ["--version"]).error !== undefined) {
    t.skip("script, which makes a terminal, is not installed");
    return;
  }
  const { wait, open } = gate();
  const target = await startTarget(() => ({ wait }));
  t.after(() => target.close());
  const command = `echo pid:$$:; exec "${process.execPath}" "${BUNDLE}"`;
  const { child, folder } = firstStart(
    t,
    ["pipe", "pipe", "inherit"],
    ["script", "-qec", command, "/dev/null"],
  );
  const said = await printed(child.stdout, /(pid:\d+:[^]*http:\/\/localhost:\d+)/);
  const [, pid = "", port = ""] = /pid:(\d+):[^]*localhost:(\d+)/.exec(said) ?? [];
  t.after(() => spawnSync("kill", ["-9", pid]));
  const id = await create(port, target.url);
  await target.request(1);

  child.kill("SIGKILL");
  while ((await fetch(`http://127.0.0.1:${port}/readyz`)).status === 200);
  process.kill(Number(pid), "SIGHUP");
  open();
  // Its folder is free once it is gone.
  const again = await whenFree(folder);
  t.after(() => again.cleanUp());
  const { body } = await again.call("GET", `/v1/jobs/${id}`);
  assert.deepEqual([body.status, body.attempts], ["completed", 1]);
});

async function whenFree(folder: string): ReturnType<typeof startProcess> {
  for (;;) {
    try {
      return await startProcess({ folder });
    } catch (error) {
      if (!String(error).includes("another Errand is running")) throw error;
    }
  }
}
