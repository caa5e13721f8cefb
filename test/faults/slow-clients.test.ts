/** A thousand clients that never come to the point: the others are answered as ever, and the thousand are sent away. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { test } from "node:test";
import { systemClock } from "../../src/base/clock.ts";
import { startProcess } from "../support/process.ts";

const CLIENTS = 1_000;

/** What each says at first, and then every second. */
const KINDS = [
  ["slow headers", "GET /v1/jobs HTTP/1.1\r\nHost: a\r\nX-Slow: ", "x"],
  ["not a byte", "", ""],
  ["a header at a time", "GET /v1/jobs HTTP/1.1\r\nHost: a\r\n", "X-Slow: 1\r\n"],
] as const;

for (const [what, first, more] of KINDS) {
  test(`${CLIENTS} connections: ${what}`, async (t) => {
    const errand = await startProcess({ env: { ERRAND_RATE_LIMIT: "0" } });
    t.after(() => errand.cleanUp());
    const residentMiB = () =>
      Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${errand.pid}/status`, "utf8"))?.[1]) / 1_024;
    const before = residentMiB();

    const closed: Promise<unknown>[] = [];
    const answers: Record<string, number> = {};
    const sockets: Socket[] = [];
    for (let i = 0; i < CLIENTS; i++) {
      const socket = connect(errand.port, "127.0.0.1");
      socket.on("error", () => {});
      socket.once("data", (data) => {
        const status = data.toString("latin1").slice(9, 12);
        answers[status] = (answers[status] ?? 0) + 1;
      });
      await once(socket, "connect");
      closed.push(new Promise((resolve) => socket.once("close", resolve)));
      socket.write(first);
      sockets.push(socket);
    }
    const dripping = setInterval(() => {
      for (const socket of sockets) if (socket.writable) socket.write(more);
    }, 1_000);
    t.after(() => clearInterval(dripping));

    const durations: number[] = [];
    for (let i = 0; i < 300; i++) {
      const startedAt = systemClock.monotonic();
      const fields = { url: "http://127.0.0.1:9/", delay: "1h" };
      assert.equal((await errand.call("POST", "/v1/jobs", fields)).status, 201);
      durations.push(systemClock.monotonic() - startedAt);
    }
    const p95 = durations.toSorted((a, b) => a - b)[285]!;
    const grown = residentMiB() - before;
    console.log(`enqueues beside them: p95 ${p95.toFixed(1)} ms; memory grew by ${Math.round(grown)} MiB`);
    assert.ok(p95 < 1_000);
    assert.ok(grown < 100);
    await Promise.all(closed);
    console.log(`all sent away: ${JSON.stringify(answers)}`);
    assert.equal((await errand.call("GET", "/livez")).status, 200);
  });
}
