/** Targets that do their worst: each attempt ends within its time limit, with the right code, and leaves no socket. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type Socket } from "node:net";
import { test } from "node:test";
import { MAX_RESPONSE_BYTES } from "../../src/jobs/outcome.ts";
import { attempts, inShort, OPEN_RULES } from "./attempts.ts";
import { type Answer, OK, rawTarget } from "./raw-target.ts";

const SHORT_MS = 200;

/** Writes a piece again and again until the other side is gone, as fast as it is taken or at a pace. */
function pour(socket: Socket, piece: string | Uint8Array): void {
  const next = (): void => {
    while (!socket.destroyed && socket.write(piece));
  };
  socket.on("drain", next);
  next();
}

function drip(socket: Socket, bytes: string): void {
  const left = bytes.split("");
  const timer = setInterval(() => {
    const byte = left.shift();
    if (byte === undefined || socket.destroyed) clearInterval(timer);
    else socket.write(byte);
  }, SHORT_MS / 10);
  socket.on("close", () => clearInterval(timer));
}

const HEAD = "HTTP/1.1 200 OK\r\n";
const HTTP2_SETTINGS = Buffer.from([0, 0, 0, 4, 0, 0, 0, 0, 0]);

const TABLE: readonly { name: string; answer: Answer; code: number | string; message: RegExp }[] = [
  { name: "says nothing", answer: () => {}, code: "timeout", message: /did not answer within 200 ms/ },
  {
    name: "sends its headers byte by byte",
    answer: (socket) => drip(socket, HEAD.repeat(9)),
    code: "timeout",
    message: /did not answer/,
  },
  {
    name: "sends its body byte by byte",
    answer: (socket) => {
      socket.write(`${HEAD}content-length: 1000\r\n\r\n`);
      drip(socket, "x".repeat(1_000));
    },
    code: "timeout",
    message: /began a response and did not finish it/,
  },
  {
    name: "sends 100 for ever",
    answer: (socket) => drip(socket, "HTTP/1.1 100 Continue\r\n\r\n".repeat(99)),
    code: "timeout",
    message: /did not answer/,
  },
  {
    name: "pours out 100s",
    answer: (socket) => pour(socket, "HTTP/1.1 100 Continue\r\n\r\n".repeat(100)),
    code: "invalid_response",
    message: /headers of over 64 KiB/,
  },
  {
    name: "pours out 103s",
    answer: (socket) => pour(socket, "HTTP/1.1 103 Early Hints\r\na: b\r\n\r\n".repeat(100)),
    code: "invalid_response",
    message: /headers of over 64 KiB/,
  },
  {
    name: "sends a 100 that is endless",
    answer: (socket) => pour(socket, "HTTP/1.1 100 Continue and so on".repeat(100)),
    code: "invalid_response",
    message: /headers of over 64 KiB/,
  },
  {
    name: "pours out headers",
    answer: (socket) => {
      socket.write(HEAD);
      pour(socket, "x-flood: 0123456789\r\n".repeat(100));
    },
    code: "invalid_response",
    message: /headers of over 64 KiB/,
  },
  {
    name: "sends one header without end",
    answer: (socket) => {
      socket.write(`${HEAD}x-flood: `);
      pour(socket, "0123456789".repeat(100));
    },
    code: "invalid_response",
    message: /headers of over 64 KiB/,
  },
  {
    name: "pours out trailers",
    answer: (socket) => {
      socket.write(`${HEAD}transfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n`);
      pour(socket, "x-flood: 0123456789\r\n".repeat(100));
    },
    code: "invalid_response",
    message: /headers of over 64 KiB/,
  },
  {
    name: "closes at once",
    answer: (socket) => socket.end(),
    code: "reset",
    message: /closed the connection before it answered/,
  },
  {
    name: "resets at once",
    answer: (socket) => socket.resetAndDestroy(),
    code: "reset",
    message: /reset the connection before it answered/,
  },
  {
    name: "closes amid the headers",
    answer: (socket) => socket.end(`${HEAD}content-len`),
    code: "reset",
    message: /before it answered/,
  },
  {
    name: "closes amid the headers, after a length",
    answer: (socket) => socket.end(`${HEAD}content-length: 5\r\nx-a`),
    code: "reset",
    message: /before it answered/,
  },
  {
    name: "resets amid the body",
    answer: (socket) =>
      socket.write(`${HEAD}content-length: 100\r\n\r\nhalf`, () => socket.resetAndDestroy()),
    code: "reset",
    message: /reset the connection before its response was complete|closed the connection before/,
  },
  {
    name: "closes amid the body",
    answer: (socket) => socket.end(`${HEAD}content-length: 100\r\n\r\nhalf`),
    code: "reset",
    message: /before its response was complete/,
  },
  {
    name: "closes amid the body as it said it would",
    answer: (socket) => socket.end(`${HEAD}connection: close\r\ncontent-length: 100\r\n\r\nhalf`),
    code: "reset",
    message: /before its response was complete/,
  },
  {
    name: "closes amid the chunks",
    answer: (socket) => socket.end(`${HEAD}transfer-encoding: chunked\r\n\r\n5\r\nhalf`),
    code: "reset",
    message: /before its response was complete/,
  },
  {
    name: "closes amid the chunks as it said it would",
    answer: (socket) => socket.end(`${HEAD}connection: close\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhalf`),
    code: "reset",
    message: /before its response was complete/,
  },
  {
    name: "sends a chunk size that is no number",
    answer: (socket) => socket.write(`${HEAD}transfer-encoding: chunked\r\n\r\nzz\r\nok\r\n`),
    code: "invalid_response",
    message: /not valid HTTP\/1\.1/,
  },
  {
    name: "sends a chunk longer than its size",
    answer: (socket) => socket.write(`${HEAD}transfer-encoding: chunked\r\n\r\n2\r\nokay\r\n0\r\n\r\n`),
    code: "invalid_response",
    message: /not valid HTTP\/1\.1/,
  },
  {
    name: "names two content lengths",
    answer: (socket) => socket.write(`${HEAD}content-length: 2\r\ncontent-length: 3\r\n\r\nok`),
    code: "invalid_response",
    message: /not valid HTTP\/1\.1/,
  },
  {
    name: "names a content length that is no number",
    answer: (socket) => socket.write(`${HEAD}content-length: two\r\n\r\nok`),
    code: "invalid_response",
    message: /not valid HTTP\/1\.1/,
  },
  {
    name: "names a negative content length",
    answer: (socket) => socket.write(`${HEAD}content-length: -2\r\n\r\nok`),
    code: "invalid_response",
    message: /not valid HTTP\/1\.1/,
  },
  {
    name: "names a length and chunks",
    answer: (socket) =>
      socket.write(`${HEAD}content-length: 2\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n`),
    code: "invalid_response",
    message: /not valid HTTP\/1\.1/,
  },
  {
    name: "has a NUL in a header",
    answer: (socket) => socket.write(`${HEAD}x-a: b\0c\r\ncontent-length: 0\r\n\r\n`),
    code: "invalid_response",
    message: /not valid HTTP\/1\.1/,
  },
  {
    name: "switches protocols",
    answer: (socket) =>
      socket.write("HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n"),
    code: "invalid_response",
    message: /switch of protocols/,
  },
  {
    name: "switches protocols without a word to which",
    answer: (socket) => socket.write("HTTP/1.1 101 Switching Protocols\r\n\r\n"),
    code: "invalid_response",
    message: /switch of protocols/,
  },
  {
    name: "speaks SSH",
    answer: (socket) => socket.write("SSH-2.0-OpenSSH_9.6\r\n"),
    code: "invalid_response",
    message: /not valid HTTP\/1\.1/,
  },
  {
    name: "speaks HTTP/2",
    answer: (socket) => socket.write(HTTP2_SETTINGS),
    code: "invalid_response",
    message: /not valid HTTP\/1\.1/,
  },
  {
    name: "speaks HTTP/0.9",
    answer: (socket) => socket.end("<html>ok</html>"),
    code: "invalid_response",
    message: /not valid HTTP\/1\.1/,
  },
  {
    name: "sends a status of four digits",
    answer: (socket) => socket.write("HTTP/1.1 2000 OK\r\n\r\n"),
    code: "invalid_response",
    message: /not valid HTTP\/1\.1/,
  },
];

for (const { name, answer, code, message } of TABLE) {
  test(`a target that ${name}: ${code}`, async (t) => {
    const target = await rawTarget(t, answer);
    const sending = attempts(t);
    try {
      for (const method of ["POST", "GET"] as const) {
        const isTimeout = code === "timeout";
        const outcome = await sending.attempt(target.url, {
          method,
          timeoutMs: isTimeout ? SHORT_MS : 3_000,
        });
        assert.ok(outcome.kind === "failure", JSON.stringify(outcome));
        assert.equal(outcome.code, code);
        assert.match(outcome.message, message);
        assert.ok(outcome.message.startsWith(`127.0.0.1:${target.port} `), outcome.message);
        // The attempt itself ends the connection; the sender is still open.
        await target.allClosed();
      }
      assert.equal(target.requests.length, 2);
    } finally {
    }
  });
}

test("a target that never stops sending: the first part is kept, and the connection is ended", async (t) => {
  const heads = [
    `${HEAD}\r\n`,
    `${HEAD}content-length: 99999999999\r\n\r\n`,
    `${HEAD}transfer-encoding: chunked\r\n\r\n`,
  ];
  for (const head of heads) {
    const piece = head.includes("chunked") ? "10\r\n0123456789abcdef\r\n" : "0123456789abcdef";
    const target = await rawTarget(t, (socket) => {
      socket.write(head);
      pour(socket, piece.repeat(500));
    });
    const sending = attempts(t);
    const outcome = await sending.attempt(target.url);
    assert.ok(outcome.kind === "response", JSON.stringify(outcome));
    assert.equal(outcome.truncated, true);
    assert.ok(
      Buffer.from(outcome.body).equals(Buffer.from("0123456789abcdef".repeat(MAX_RESPONSE_BYTES / 16))),
    );
    await target.allClosed();
  }
});

/** A port on which nobody listens any more. */
async function closedPort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const bound = server.address();
  server.close();
  await once(server, "close");
  return typeof bound === "object" ? (bound?.port ?? 0) : 0;
}

test("nobody listens: connect; the name is unknown: dns; the name server is silent: timeout", async (t) => {
  const closed = await closedPort();
  const unknown = attempts(t, OPEN_RULES, (hostname, done) => {
    if (hostname === "silent.example") return;
    if (hostname === "empty.example") done(null, []);
    else
      done(
        Object.assign(new Error("getaddrinfo"), {
          code: hostname === "later.example" ? "EAI_AGAIN" : "ENOTFOUND",
        }),
        [],
      );
  });
  const rows = [
    [`http://127.0.0.1:${closed}/`, "connect", `127.0.0.1:${closed} refused the connection`],
    ["http://unknown.example/", "dns", "unknown.example:80: the name does not resolve to any address"],
    ["https://empty.example/", "dns", "empty.example:443: the name does not resolve to any address"],
    [
      "https://later.example/",
      "dns",
      "later.example:443: the name could not be looked up, the name server did not answer",
    ],
    ["https://silent.example/", "timeout", "silent.example:443 could not be found in DNS within 200 ms"],
  ] as const;
  for (const [url, code, message] of rows) {
    const outcome = await unknown.attempt(url, { timeoutMs: SHORT_MS });
    assert.ok(outcome.kind === "failure");
    assert.equal(outcome.code, code);
    assert.equal(outcome.message, message);
  }
});

test("several addresses: one that refuses does not hide one that answers; all that refuse are one error", async (t) => {
  const target = await rawTarget(t, (socket) => socket.write(OK));
  const sending = attempts(t, OPEN_RULES, (hostname, done) => {
    const last = hostname === "half.example" ? "127.0.0.1" : "127.0.0.3";
    done(null, [
      { address: "127.0.0.2", family: 4 },
      { address: last, family: 4 },
    ]);
  });
  assert.equal(inShort(await sending.attempt(`http://half.example:${target.port}/`)), 200);
  assert.equal(inShort(await sending.attempt(`http://none.example:${target.port}/`)), "connect");
});

test("those who want the same name at the same time ask for it once", async (t) => {
  const target = await rawTarget(t, (socket) => socket.write(OK));
  let count = 0;
  const sending = attempts(t, OPEN_RULES, (_hostname, done) => {
    count += 1;
    setImmediate(() => done(null, [{ address: "127.0.0.1", family: 4 }]));
  });
  const url = `http://same.example:${target.port}/`;
  const outcomes = await Promise.all(Array.from({ length: 20 }, () => sending.attempt(url)));
  assert.deepEqual(new Set(outcomes.map(inShort)), new Set([200]));
  assert.equal(count, 1);
  assert.equal(target.connections.length, 20);
});

test("a header that undici does not write is a defect, not an outcome", async (t) => {
  const target = await rawTarget(t, (socket) => socket.write(OK));
  const sending = attempts(t);
  await assert.rejects(
    sending.attempt(target.url, { headers: { "x-a": "line\nbreak" } }),
    /invalid header|x-a/,
  );
});
