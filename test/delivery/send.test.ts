/** Attempts at targets that behave: what is sent, what is kept of the answer, and how connections are used again. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type IncomingMessage } from "node:http";
import { text } from "node:stream/consumers";
import { type TestContext, test } from "node:test";
import { gzipSync } from "node:zlib";
import { Webhook } from "standardwebhooks";
import { MAX_RESPONSE_BYTES } from "../../src/jobs/outcome.ts";
import { type Attempts, attempts, inShort, SECRET } from "./attempts.ts";
import { type Answer, OK, type RawTarget, rawTarget } from "./raw-target.ts";

/** A target with this answer, and a sender. */
async function against(t: TestContext, answer: Answer): Promise<{ target: RawTarget; sending: Attempts }> {
  const sending = attempts(t);
  return { sending, target: await rawTarget(t, answer) };
}

test("the target receives the request line, the host and the headers, and nothing more", async (t) => {
  const { target, sending } = await against(t, (socket) => socket.write(OK));
  const headers = { "x-mine": "1" };
  await sending.attempt(`${target.url}a%20b?x=%C3%BC&y=1#part`, { method: "DELETE", headers, body: null });
  const [requestLine, ...lines] = target.requests[0]?.split("\r\n") ?? [];
  assert.equal(requestLine, "DELETE /a%20b?x=%C3%BC&y=1 HTTP/1.1");
  const names = lines.map((line) => line.split(":", 1)[0]);
  const own = [
    "user-agent",
    "errand-job-id",
    "errand-attempt",
    "webhook-id",
    "webhook-timestamp",
    "webhook-signature",
  ];
  assert.deepEqual(names, ["host", "connection", "x-mine", ...own]);
  assert.ok(lines.includes(`host: 127.0.0.1:${target.port}`));
  assert.ok(lines.includes("user-agent: Errand/0.0.0"));
});

test("an HTTP server receives the payload's bytes as they are, and the signature holds", async (t) => {
  const payload = '{"b":1.0,"a":9007199254740993,"c":"\\u00fc ü"}';
  const bodies: string[] = [];
  const verify = async (request: IncomingMessage): Promise<number> => {
    const body = await text(request);
    bodies.push(body);
    const headers = Object.entries(request.headers).map(([name, value]): [string, string] => [
      name,
      String(value),
    ]);
    new Webhook(SECRET).verify(body, Object.fromEntries(headers), { jsonParse: false });
    return request.headers["content-type"] === "application/json" ? 200 : 415;
  };
  const server = createServer((request, response) => {
    verify(request).then(
      (code) => response.writeHead(code).end(),
      (error: unknown) => response.writeHead(400).end(String(error)),
    );
  }).listen(0, "127.0.0.1");
  t.after(() => server.close());
  await once(server, "listening");
  const bound = server.address();
  const sending = attempts(t);
  for (const body of [payload, Buffer.from(payload)]) {
    const port = typeof bound === "object" ? bound?.port : 0;
    assert.equal(inShort(await sending.attempt(`http://127.0.0.1:${port}/`, { body })), 200);
  }
  assert.deepEqual(bodies, [payload, payload]);
  await sending.close();
});

test("the answer is kept: status, joined headers, body bytes; secrets in headers are masked", async (t) => {
  const head = [
    "HTTP/1.1 201 Created",
    "Content-Length: 3",
    "X-Several: a",
    "x-several: b, c",
    "Set-Cookie: sid=1",
    "set-cookie: b=2",
    "X-Api-Key: k",
    "__proto__: p",
    "constructor: c",
    "x-latin: \xfc",
    "x-empty:",
  ];
  const { target, sending } = await against(t, (socket) =>
    socket.write(Buffer.from(`${head.join("\r\n")}\r\n\r\n\x00\xff\n`, "latin1")),
  );
  const outcome = await sending.attempt(target.url);
  assert.ok(outcome.kind === "response");
  assert.equal(outcome.code, 201);
  assert.equal(outcome.truncated, false);
  assert.deepEqual([...outcome.body], [0, 255, 10]);
  assert.ok(Number.isInteger(outcome.durationMs));
  assert.deepEqual(
    new Map(Object.entries(outcome.headers)),
    new Map([
      ["content-length", "3"],
      ["x-several", "a, b, c"],
      ["set-cookie", "***"],
      ["x-api-key", "***"],
      ["__proto__", "p"],
      ["constructor", "c"],
      ["x-latin", "ü"],
      ["x-empty", ""],
    ]),
  );
});

const CHUNKS = Array.from({ length: 3_000 }, (_, i) => `1\r\n${String.fromCharCode(97 + (i % 26))}\r\n`).join(
  "",
);
const LETTERS = Array.from({ length: 3_000 }, (_, i) => String.fromCharCode(97 + (i % 26))).join("");
const MEBIBYTE = "x".repeat(MAX_RESPONSE_BYTES);

const ANSWERS: readonly { name: string; answer: string; code: number; body: string; truncated?: boolean }[] =
  [
    { name: "an empty body", answer: "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n", code: 200, body: "" },
    { name: "204", answer: "HTTP/1.1 204 No Content\r\n\r\n", code: 204, body: "" },
    { name: "304", answer: "HTTP/1.1 304 Not Modified\r\netag: x\r\n\r\n", code: 304, body: "" },
    {
      name: "204 with a content length",
      answer: "HTTP/1.1 204 No Content\r\ncontent-length: 5\r\n\r\n",
      code: 204,
      body: "",
    },
    {
      name: "chunks of one byte",
      answer: `HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n${CHUNKS}0\r\n\r\n`,
      code: 200,
      body: LETTERS,
    },
    {
      name: "chunks and a trailer",
      answer: "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nx-trailer: 1\r\n\r\n",
      code: 200,
      body: "ok",
    },
    {
      name: "exactly the limit",
      answer: `HTTP/1.1 200 OK\r\ncontent-length: ${MEBIBYTE.length}\r\n\r\n${MEBIBYTE}`,
      code: 200,
      body: MEBIBYTE,
    },
    {
      name: "one byte over the limit",
      answer: `HTTP/1.1 200 OK\r\ncontent-length: ${MEBIBYTE.length + 1}\r\n\r\n${MEBIBYTE}y`,
      code: 200,
      body: MEBIBYTE,
      truncated: true,
    },
    {
      name: "a redirect, which is not followed",
      answer: "HTTP/1.1 302 Found\r\nlocation: /elsewhere\r\ncontent-length: 0\r\n\r\n",
      code: 302,
      body: "",
    },
    {
      name: "an error with a body",
      answer: "HTTP/1.1 503 Busy\r\nretry-after: 5\r\ncontent-length: 4\r\n\r\nbusy",
      code: 503,
      body: "busy",
    },
    {
      name: "100 before it, not asked for",
      answer: `HTTP/1.1 100 Continue\r\n\r\n${OK}`,
      code: 200,
      body: "ok",
    },
    {
      name: "100 twice, with headers",
      answer: `HTTP/1.1 100 Continue\r\nx: y\r\n\r\nHTTP/1.1 100 C\r\n\r\n${OK}`,
      code: 200,
      body: "ok",
    },
    {
      name: "103 before it",
      answer: `HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n${OK}`,
      code: 200,
      body: "ok",
    },
    {
      name: "102, 100, 103 before it",
      answer: `HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 103 Early Hints\r\n\r\n${OK}`,
      code: 200,
      body: "ok",
    },
    {
      name: "a body that looks like a 100",
      answer: "HTTP/1.1 200 OK\r\ncontent-length: 25\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n",
      code: 200,
      body: "HTTP/1.1 100 Continue\r\n\r\n",
    },
    {
      name: "more bytes than its content length",
      answer: "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok and more",
      code: 200,
      body: "ok",
    },
  ];

for (const { name, answer, code, body, truncated = false } of ANSWERS) {
  test(`an answer with ${name}`, async (t) => {
    const { target, sending } = await against(t, (socket) => socket.write(answer, "latin1"));
    const outcome = await sending.attempt(target.url);
    assert.ok(outcome.kind === "response", JSON.stringify(outcome));
    assert.equal(outcome.code, code);
    assert.ok(Buffer.from(outcome.body).equals(Buffer.from(body)), `${outcome.body.length} bytes`);
    assert.equal(outcome.truncated, truncated);
    assert.equal(target.requests.length, 1);
  });
}

test("a 100 Continue that comes byte by byte, and a body in pieces of its own", async (t) => {
  const { target, sending } = await against(t, (socket) => {
    const bytes = `HTTP/1.1 100 Continue\r\n\r\n${OK}`.split("");
    const next = (): void => {
      const byte = bytes.shift();
      if (byte !== undefined) socket.write(byte, () => setImmediate(next));
    };
    next();
  });
  for (let i = 0; i < 2; i++) {
    const outcome = await sending.attempt(target.url);
    assert.ok(outcome.kind === "response", JSON.stringify(outcome));
    assert.equal(Buffer.from(outcome.body).toString(), "ok");
  }
  assert.equal(target.connections.length, 1);
});

test("a body that looks like 100 Continues, wherever it is cut, is kept whole", async (t) => {
  const body = "HTTP/1.1 100\r\n\r\n".repeat(1_024);
  // As long as three of them: any piece of 4 KiB begins with one.
  const head = `HTTP/1.1 200 OK\r\ncontent-length: ${body.length}\r\na: b\r\n\r\n`;
  const { target, sending } = await against(t, (socket) => socket.write(head + body));
  const outcome = await sending.attempt(target.url);
  assert.ok(outcome.kind === "response", JSON.stringify(outcome));
  assert.equal(Buffer.from(outcome.body).toString(), body);
});

test("HTTP/1.0 without a length: the body lasts until the connection is closed", async (t) => {
  const { target, sending } = await against(t, (socket) =>
    socket.end("HTTP/1.0 200 OK\r\n\r\nuntil the end"),
  );
  const outcome = await sending.attempt(target.url);
  assert.ok(outcome.kind === "response");
  assert.equal(Buffer.from(outcome.body).toString(), "until the end");
});

test("a compressed body is kept as it came, however large it would become", async (t) => {
  const bomb = gzipSync(Buffer.alloc(64 * 1024 * 1024));
  const { target, sending } = await against(t, (socket) => {
    socket.write(`HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: ${bomb.length}\r\n\r\n`);
    socket.write(bomb);
  });
  const outcome = await sending.attempt(target.url);
  assert.ok(outcome.kind === "response");
  assert.ok(Buffer.from(outcome.body).equals(bomb));
  assert.equal(outcome.headers["content-encoding"], "gzip");
});

test("one after the other, attempts share a connection; at once, each has its own", async (t) => {
  const { target, sending } = await against(t, (socket) => socket.write(OK));
  for (let i = 0; i < 5; i++) assert.equal(inShort(await sending.attempt(target.url)), 200);
  assert.equal(target.connections.length, 1);
  await Promise.all(Array.from({ length: 8 }, () => sending.attempt(target.url)));
  assert.equal(target.connections.length, 8);
  assert.equal(target.requests.length, 13);
});

test("a connection that the target closed while it was idle is not used again", async (t) => {
  const { target, sending } = await against(t, (socket) => socket.write(OK));
  assert.equal(inShort(await sending.attempt(target.url)), 200);
  target.connections[0]?.end();
  await target.allClosed();
  assert.equal(inShort(await sending.attempt(target.url)), 200);
  assert.equal(target.connections.length, 2);
});

test("a connection is not used again after `connection: close`, nor after a keep-alive hint of nothing", async (t) => {
  for (const header of ["connection: close", "keep-alive: timeout=1"]) {
    const { target, sending } = await against(t, (socket) =>
      socket.write(`HTTP/1.1 200 OK\r\n${header}\r\ncontent-length: 0\r\n\r\n`),
    );
    for (let i = 0; i < 3; i++) assert.equal(inShort(await sending.attempt(target.url)), 200);
    assert.equal(target.connections.length, 3);
  }
});

test("a target that closes a used connection on a new request: reset, and nothing is sent again in secret", async (t) => {
  let count = 0;
  const { target, sending } = await against(t, (socket) => {
    count += 1;
    if (count === 1) socket.write(OK);
    else socket.destroy();
  });
  assert.equal(inShort(await sending.attempt(target.url)), 200);
  for (const method of ["POST", "GET"] as const)
    assert.equal(inShort(await sending.attempt(target.url, { method })), "reset");
  assert.equal(target.requests.length, 3);
});

test("a target that answers without reading the request: the answer counts, the connection is not used again", async (t) => {
  const { target, sending } = await against(t, (socket) => {
    socket.pause();
    socket.write(OK);
  });
  const body = new Uint8Array(16 * 1024 * 1024);
  for (let i = 0; i < 2; i++) assert.equal(inShort(await sending.attempt(target.url, { body })), 200);
  assert.equal(target.connections.length, 2);
  for (const socket of target.connections) socket.resume();
});

test("an aborted signal rejects with its reason at every stage, and the connection is ended", async (t) => {
  const reason = new Error("shutting down");
  const { promise: asked, resolve } = Promise.withResolvers<void>();
  const { target, sending } = await against(t, (socket) => {
    socket.write("HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nab");
    resolve();
  });
  const shutdown = new AbortController();
  const { signal } = shutdown;
  const underWay = assert.rejects(sending.attempt(target.url, { signal }), reason);
  await asked;
  shutdown.abort(reason);
  await underWay;
  await target.allClosed();
  await assert.rejects(sending.attempt(target.url, { signal }), reason);
  assert.equal(target.requests.length, 1);
});

test("close ends what is under way, and nothing is sent afterwards", async (t) => {
  const { promise: asked, resolve } = Promise.withResolvers<void>();
  const { target, sending } = await against(t, () => resolve());
  const underWay = assert.rejects(sending.attempt(target.url), /closed/);
  await asked;
  await sending.close();
  await underWay;
  await assert.rejects(sending.attempt(target.url), /closed/);
  assert.equal(target.connections.length, 1);
});
