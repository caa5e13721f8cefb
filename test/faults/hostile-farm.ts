/** A process full of targets that do their worst: tells its parent where they are, and when asked how many connections are open. */
import { createServer, type Socket } from "node:net";
import { createServer as createTlsServer } from "node:tls";
import { gzipSync } from "node:zlib";
import { newCertificate } from "../delivery/certificate.ts";

/** One of them, and what becomes of its job: an error code, or `completed`. */
export interface HostileTarget {
  readonly url: string;
  readonly behaviour: string;
  readonly end: string;
}

interface Behaviour {
  readonly end: string;
  /** Called with the first bytes of the request. */
  readonly behave: (socket: Socket) => void;
  readonly tls?: { key: string; cert: string; ALPNProtocols?: string[] };
}

const HEAD = "HTTP/1.1 200 OK\r\n";
const BOMB = gzipSync(Buffer.alloc(8 * 1024 * 1024));
/** An HTTP/2 server's first frame, empty SETTINGS (RFC 9113 §3.4 and §6.5). */
const HTTP2_SETTINGS = Buffer.from("000000040000000000", "hex");
const HOSTS = ["127.0.0.1"];

const BEHAVIOURS: Readonly<Record<string, Behaviour>> = {
  "no answer": { end: "timeout", behave: () => {} },
  "one byte of the headers a second": { end: "timeout", behave: (socket) => drip(socket, HEAD) },
  "one byte of the body a second": {
    end: "timeout",
    behave(socket) {
      socket.write(`${HEAD}content-length: 100000\r\n\r\n`);
      drip(socket, "x");
    },
  },
  "endless body": {
    end: "completed",
    behave(socket) {
      socket.write(`${HEAD}transfer-encoding: chunked\r\n\r\n`);
      pour(socket, `10000\r\n${"x".repeat(0x10000)}\r\n`);
    },
  },
  "gzip bomb": {
    end: "completed",
    behave(socket) {
      socket.write(`${HEAD}content-type: application/json\r\ncontent-encoding: gzip\r\n\r\n`);
      pour(socket, BOMB);
    },
  },
  "header flood": {
    end: "invalid_response",
    behave(socket) {
      socket.write(HEAD);
      pour(socket, "x-flood: 0123456789\r\n".repeat(100));
    },
  },
  "a header just under the limit": {
    end: "completed",
    behave: (socket) => socket.write(`${HEAD}set-cookie: ${"a".repeat(60_000)}\r\ncontent-length: 0\r\n\r\n`),
  },
  "100 for ever": {
    end: "invalid_response",
    behave: (socket) => pour(socket, "HTTP/1.1 100 Continue\r\n\r\n".repeat(100)),
  },
  "103 for ever": {
    end: "invalid_response",
    behave: (socket) => pour(socket, "HTTP/1.1 103 Early Hints\r\na: b\r\n\r\n".repeat(100)),
  },
  "101": {
    end: "invalid_response",
    behave: (socket) => socket.write("HTTP/1.1 101 Switching Protocols\r\n\r\n"),
  },
  "reset in mid-body": {
    end: "reset",
    behave: (socket) =>
      socket.write(`${HEAD}content-length: 100\r\n\r\nhalf`, () => socket.resetAndDestroy()),
  },
  "bad chunking": {
    end: "invalid_response",
    behave: (socket) => socket.write(`${HEAD}transfer-encoding: chunked\r\n\r\nzz\r\nok\r\n`),
  },
  "fewer bytes than its content-length": {
    end: "reset",
    behave: (socket) => socket.end(`${HEAD}content-length: 100\r\n\r\nhalf`),
  },
  "redirect to itself": {
    end: "http_status",
    behave: (socket) => socket.write("HTTP/1.1 302 Found\r\nlocation: /\r\ncontent-length: 0\r\n\r\n"),
  },
  "self-signed": { end: "tls", behave: () => {}, tls: newCertificate({ name: "self", hosts: HOSTS }) },
  expired: {
    end: "tls",
    behave: () => {},
    tls: newCertificate({ name: "old", hosts: HOSTS, until: "210101000000Z" }),
  },
  "HTTP/2 only": { end: "invalid_response", behave: (socket) => socket.write(HTTP2_SETTINGS) },
};

const COUNT = 100;
let open = 0;

/** As fast as it is taken. */
function pour(socket: Socket, piece: string | Uint8Array): void {
  const next = () => {
    while (!socket.destroyed && socket.write(piece));
  };
  socket.on("drain", next);
  next();
}

function drip(socket: Socket, bytes: string): void {
  let sent = 0;
  const timer = setInterval(() => socket.write(bytes[sent++ % bytes.length] ?? ""), 1_000);
  socket.on("close", () => clearInterval(timer));
}

function watch(socket: Socket): void {
  open += 1;
  socket.on("error", () => {});
  socket.on("close", () => (open -= 1));
}

/** Resolves with the URL where it listens. */
async function start({ behave, tls }: Behaviour): Promise<string> {
  const answer = (socket: Socket) => socket.on("error", () => {}).once("data", () => behave(socket));
  const server = tls === undefined ? createServer(answer) : createTlsServer(tls, answer);
  server.on("connection", watch);
  server.on("tlsClientError", () => {});
  await new Promise<void>((resolve) => {
    server.listen(0, "127.0.0.1", resolve);
  });
  const address = server.address();
  const port = typeof address === "object" && address !== null ? address.port : 0;
  return `${tls === undefined ? "http" : "https"}://127.0.0.1:${port}/`;
}

const targets: HostileTarget[] = [];
const behaviours = Object.entries(BEHAVIOURS);
for (let i = 0; i < COUNT; i++) {
  const [name, behaviour] = behaviours[i % behaviours.length]!;
  targets.push({ url: await start(behaviour), behaviour: name, end: behaviour.end });
}
process.on("message", () => process.send?.({ open }));
process.on("disconnect", () => process.exit(0));
process.send?.({ targets });
