/** Large answers: those that nobody reads do not fill the memory, and while one is made others are served. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import { type AddressInfo, connect, type Socket } from "node:net";
import { after, before, describe, type TestContext, test } from "node:test";
import { RESPONSE_ALREADY_SENT } from "@hono/node-server/utils/response";
import { Hono } from "hono";
import { systemClock } from "../../src/base/clock.ts";
import { createLogger } from "../../src/base/log.ts";
import type { HttpEnv } from "../../src/http/env.ts";
import { listen } from "../../src/http/server.ts";
import { UnreadAnswers } from "../../src/http/unread.ts";
import { startTestApp, TEST_KEY, type TestApp } from "../support/app.ts";
import { rawRequest } from "../support/raw-request.ts";
import { startTarget, type Target } from "../support/target.ts";

const MIB = 1 << 20;
const LOG = createLogger("silent", "json");

let app: TestApp;
let target: Target;
/** A page of this job's attempts is 8 MiB long, and more than the system keeps for a connection. */
let page: string;
before(async () => {
  app = await startTestApp({ config: { rateLimit: 0 } });
  target = await startTarget(() => ({ status: 500, body: "x".repeat(MIB) }));
  const { id } = await app.createJob({ url: target.url, max_attempts: 8, retry_delays: ["0s"] });
  assert.equal((await app.ended(id))["attempts"], 8);
  page = request(`/v1/jobs/${id}/attempts`);
});
after(async () => {
  await app.stop();
  await target.close();
});

function request(path: string, more = ""): string {
  return `GET ${path} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${TEST_KEY}\r\n${more}\r\n`;
}

/** A connection that has sent this, and on which the beginning of an answer has come; nothing more of it is read. */
async function unread(sent: string): Promise<Socket> {
  const socket = connect(app.port, "127.0.0.1");
  socket.on("error", () => {});
  socket.write(sent);
  await once(socket, "readable");
  return socket;
}

const usage = () => app.call("GET", "/v1/usage");

describe("answers that nobody reads", () => {
  test("over 64 MiB of them on many connections, and the account gets 429 until they are gone", async () => {
    const sockets: Socket[] = [];
    let refused = await usage();
    while (refused.status === 200 && sockets.length < 20) {
      sockets.push(await unread(page));
      refused = await usage();
    }
    assert.equal(sockets.length, 8);
    assert.equal(refused.status, 429);
    assert.equal(refused.body["code"], "rate_limited");
    assert.equal(refused.headers.get("retry-after"), "1");
    for (const socket of sockets) socket.destroy();
    while ((await usage()).status !== 200);
  });

  test("requests sent ahead on one connection wait for the answers before them to be read", async () => {
    const socket = await unread(page.repeat(50));
    assert.equal((await usage()).status, 200);
    socket.destroy();
  });

  test("requests sent ahead are answered in turn, each one", async () => {
    const last = request("/livez", "Connection: close\r\n");
    const socket = connect(app.port, "127.0.0.1");
    socket.write(request("/livez").repeat(99) + last);
    let text = "";
    for await (const piece of socket.setEncoding("utf8")) text += piece;
    assert.equal(text.split("HTTP/1.1 200 OK").length, 101);
  });

  test("a client that sends on and on and reads nothing is cut off", async () => {
    const socket = await unread(page + request("/livez").repeat(200));
    socket.resume();
    await once(socket, "close");
    assert.equal((await rawRequest(app.port, request("/livez"))).status, 200);
  });
});

describe("what is counted as unread", () => {
  const tenant = { accountId: "acc_1", mode: "test" } as const;

  /** A response that waits to be given, and the connection of who asked for it. */
  async function asked(t: TestContext): Promise<{ outgoing: ServerResponse; socket: Socket }> {
    const server = createServer().listen(0, "127.0.0.1");
    await once(server, "listening");
    t.after(() => server.close());
    const socket = connect((server.address() as AddressInfo).port, "127.0.0.1");
    socket.write("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    const [, outgoing] = (await once(server, "request")) as [unknown, ServerResponse];
    return { outgoing, socket };
  }

  test("an answer is until its connection is gone, and none that was made after that", async (t) => {
    const unread = new UnreadAnswers();
    const { outgoing, socket } = await asked(t);
    unread.add(tenant, 65 * MIB, outgoing);
    assert.throws(() => unread.check(tenant), { code: "rate_limited" });
    socket.destroy();
    await once(outgoing, "close");
    unread.check(tenant);
    unread.add(tenant, 65 * MIB, outgoing);
    unread.check(tenant);
  });

  test("many answers in one are taken together, without a listener for each", async (t) => {
    const unread = new UnreadAnswers();
    const { outgoing, socket } = await asked(t);
    const listeners = outgoing.listenerCount("close");
    for (let i = 0; i < 65; i += 1) unread.add(tenant, MIB, outgoing);
    assert.throws(() => unread.check(tenant), { code: "rate_limited" });
    assert.equal(outgoing.listenerCount("close"), listeners + 1);
    outgoing.end();
    await once(socket.resume(), "close");
    unread.check(tenant);
  });
});

test("a standstill cuts off an answer that is begun, and none that is still worked on", async (t) => {
  const web = new Hono<HttpEnv>();
  // As Node says it after two minutes.
  web.get("/slow", ({ env, text }) => {
    env.incoming.socket.emit("timeout");
    return text("done");
  });
  web.get("/stuck", ({ env }) => {
    env.outgoing.write("begun");
    env.incoming.socket.emit("timeout");
    return RESPONSE_ALREADY_SENT;
  });
  const listener = await listen(web, { host: "127.0.0.1", port: 0 }, systemClock, LOG);
  t.after(() => listener.close());
  const get = (path: string) => fetch(`http://127.0.0.1:${listener.port}${path}`).then((got) => got.text());
  assert.equal(await get("/slow"), "done");
  await assert.rejects(get("/stuck"));
});

test("a stop lets an answer that is being sent come to its end", async () => {
  const web = new Hono<HttpEnv>().get("/", ({ text }) => text("x".repeat(16 * MIB)));
  const listener = await listen(web, { host: "127.0.0.1", port: 0 }, systemClock, LOG);
  const response = await fetch(`http://127.0.0.1:${listener.port}/`);
  const closed = listener.close();
  assert.equal((await response.text()).length, 16 * MIB);
  await closed;
});

test("while a page of large responses is made, who asks after it is answered before it", async (t) => {
  const sockets = [connect(app.port, "127.0.0.1"), connect(app.port, "127.0.0.1")] as const;
  t.after(() => sockets.forEach((socket) => socket.destroy()));
  await Promise.all(sockets.map((socket) => once(socket, "connect")));
  const answered = sockets.map((socket, i) => once(socket, "readable").then(() => i));
  sockets[0].write(page);
  sockets[1].write(request("/livez"));
  assert.equal(await Promise.race(answered), 1);
});
