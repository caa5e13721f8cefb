/**
 * The real service in a network namespace of its own, with a private name server: names that turn to inner addresses,
 * and names whose server is dead. Skipped where the machine does not allow such a namespace.
 */
import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { fileURLToPath } from "node:url";
import { systemClock } from "../../src/base/clock.ts";
import { startProcess, type TestProcess } from "../support/process.ts";
import { startDnsServer, type Zone } from "./dns-server.ts";

/** Documentation addresses (RFC 5737) stand for the internet. */
const PUBLIC = "198.51.100.1";
const INNER = "10.9.8.7";
const PORT = 8_080;

const NAMESPACE = ["--map-root-user", "--net", "--mount"];
const INSIDE = "ERRAND_TEST_INSIDE";

if (process.env[INSIDE] === undefined) {
  const possible = spawnSync("unshare", [...NAMESPACE, "ip", "link", "set", "lo", "up"]).status === 0;
  const skip = possible ? false : "no network namespaces here";
  test("in a network of its own", { skip }, async () => {
    const folder = mkdtempSync(join(tmpdir(), "errand-network-"));
    writeFileSync(join(folder, "resolv.conf"), "nameserver 127.0.0.1\noptions timeout:5 attempts:2\n");
    writeFileSync(join(folder, "hosts"), "127.0.0.1 localhost\n");
    writeFileSync(join(folder, "nsswitch.conf"), "hosts: files dns\n");
    const enter = [
      "ip link set lo up",
      `ip addr add ${PUBLIC}/32 dev lo`,
      `ip addr add ${INNER}/32 dev lo`,
      ...["resolv.conf", "hosts", "nsswitch.conf"].map(
        (name) => `{ [ ! -e /etc/${name} ] || mount --bind ${folder}/${name} /etc/${name}; }`,
      ),
      `exec "$@"`,
    ].join(" && ");
    const node = [process.execPath, ...process.execArgv.filter((flag) => !flag.startsWith("--test"))];
    const again = [...node, "--test-reporter=spec", fileURLToPath(import.meta.url)];
    const { NODE_TEST_CONTEXT: _, ...env } = process.env;
    const inside = spawn("unshare", [...NAMESPACE, "sh", "-c", enter, "sh", ...again], {
      env: { ...env, [INSIDE]: "1" },
      stdio: ["ignore", "inherit", "inherit"],
    });
    const [code] = (await once(inside, "exit")) as [number | null];
    rmSync(folder, { recursive: true, force: true });
    assert.equal(code, 0);
  });
} else {
  test("DNS rebinding: 200 jobs to a name that alternates, and none reaches the inner address", rebinding);
  test("dead name servers hold up neither names whose server answers, nor enqueues", deadNameServers);
}

interface Heard {
  /** Connections ever made. */
  count: number;
}

/** A target that closes each connection, so that every job asks for the name again. */
async function listen(t: TestContext, address: string): Promise<Heard> {
  const heard: Heard = { count: 0 };
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    heard.count += 1;
    sockets.add(socket);
    socket.on("error", () => {});
    socket.once("data", () =>
      socket.end("HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\nok"),
    );
  });
  server.listen(PORT, address);
  await once(server, "listening");
  t.after(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return heard;
}

async function network(t: TestContext, zone: Zone) {
  const dns = await startDnsServer(zone);
  t.after(() => dns.close());
  return { outer: await listen(t, PUBLIC), inner: await listen(t, INNER) };
}

async function service(t: TestContext, env: Record<string, string>): Promise<TestProcess> {
  const errand = await startProcess({ env: { ERRAND_LOG_LEVEL: "info", ERRAND_RATE_LIMIT: "0", ...env } });
  t.after(() => errand.cleanUp());
  return errand;
}

async function deliver(errand: TestProcess, url: string): Promise<Record<string, any>> {
  const { body, text } = await errand.call("POST", "/v1/jobs", {
    url,
    max_attempts: 3,
    retry_delays: ["0s"],
  });
  assert.ok(body["id"], text);
  return (await errand.call("GET", `/v1/jobs/${body["id"]}?wait=60s`)).body;
}

async function rebinding(t: TestContext) {
  let asked = 0;
  const { outer, inner } = await network(t, (name) => {
    if (name !== "rebinding.test") return [];
    asked += 1;
    return [asked % 2 === 0 ? INNER : PUBLIC];
  });
  const errand = await service(t, { ERRAND_EGRESS_DENY: "private" });
  const outcomes: Record<string, number> = {};
  const count = (job: Record<string, any>) => {
    const outcome = job["last_error_code"] ?? job["status"];
    outcomes[outcome] = (outcomes[outcome] ?? 0) + 1;
    assert.equal(job["attempts"], 1);
  };
  const url = `http://rebinding.test:${PORT}/`;
  for (let i = 0; i < 100; i++) count(await deliver(errand, url));
  // Many at once share some of the answers.
  for (let i = 0; i < 10; i++)
    for (const job of await Promise.all(Array.from({ length: 10 }, () => deliver(errand, url)))) count(job);
  assert.equal(inner.count, 0);
  assert.equal((outcomes["completed"] ?? 0) + (outcomes["blocked_target"] ?? 0), 200);
  assert.ok(outcomes["completed"]! > 20 && outcomes["blocked_target"]! > 20, JSON.stringify(outcomes));
  assert.equal(outer.count, outcomes["completed"]);

  // Without the rule the name does lead there: the test would see it.
  const open = await service(t, {});
  for (let i = 0; i < 4; i++) await deliver(open, url);
  assert.ok(inner.count > 0);
}

/** As many dead names as this are looked up at once; libuv gives half of the threads to look-ups. */
const DEAD_NAMES = 60;

async function deadNameServers(t: TestContext) {
  const { outer } = await network(t, (name) => (name.includes("dead") ? null : [PUBLIC]));
  const errand = await service(t, {});
  for (let i = 0; i < DEAD_NAMES; i++) {
    const fields = { url: `http://dead-${i}.test:${PORT}/`, timeout: "20s", max_attempts: 1 };
    assert.equal((await errand.call("POST", "/v1/jobs", fields)).status, 201);
  }
  const durations: number[] = [];
  for (let i = 0; i < 60; i++) {
    const startedAt = systemClock.monotonic();
    const job = await deliver(errand, `http://alive-${i}.test:${PORT}/`);
    durations.push(systemClock.monotonic() - startedAt);
    assert.equal(job["status"], "completed");
  }
  const p95 = durations.toSorted((a, b) => a - b)[56]!;
  const active = (await errand.call("GET", "/v1/jobs?status=active&limit=100")).body["data"].length;
  console.log(
    `${active} look-ups of dead names under way; from enqueue to the end: p95 ${Math.round(p95)} ms`,
  );
  assert.equal(active, DEAD_NAMES);
  assert.equal(outer.count, 60);
  assert.ok(p95 < 1_000, `p95 is ${p95} ms`);
}
