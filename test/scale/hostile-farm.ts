/** A process full of targets that do their worst: tells its parent their ports, and when asked how many connections are open. */
import { createServer, type Socket } from "node:net";
import { createServer as createTlsServer } from "node:tls";
import { gzipSync } from "node:zlib";
import { newCertificate } from "../delivery/certificate.ts";

const HEAD = "HTTP/1.1 200 OK\r\n";
const BOMB = gzipSync(Buffer.alloc(8 * 1024 * 1024));

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

const BEHAVIOURS: readonly ((socket: Socket) => void)[] = [
  function saysNothing() {},
  (socket) => drip(socket, HEAD),
  (socket) => {
    socket.write(`${HEAD}content-length: 100000\r\n\r\n`);
    drip(socket, "x");
  },
  function endlessBody(socket) {
    socket.write(`${HEAD}transfer-encoding: chunked\r\n\r\n`);
    pour(socket, `10000\r\n${"x".repeat(0x10000)}\r\n`);
  },
  function gzipBomb(socket) {
    socket.write(`${HEAD}content-type: application/json\r\ncontent-encoding: gzip\r\n\r\n`);
    pour(socket, BOMB);
  },
  function headerFlood(socket) {
    socket.write(HEAD);
    pour(socket, "x-flood: 0123456789\r\n".repeat(100));
  },
  (socket) => pour(socket, "HTTP/1.1 100 Continue\r\n\r\n".repeat(100)),
  (socket) => pour(socket, "HTTP/1.1 103 Early Hints\r\na: b\r\n\r\n".repeat(100)),
  (socket) => socket.write(`${HEAD}content-length: 100\r\n\r\nhalf`, () => socket.resetAndDestroy()),
  (socket) => socket.write(`${HEAD}transfer-encoding: chunked\r\n\r\nzz\r\nok\r\n`),
  (socket) => socket.end(`${HEAD}content-length: 100\r\n\r\nhalf`),
  (socket) => socket.write("HTTP/1.1 101 Switching Protocols\r\n\r\n"),
  (socket) => socket.write("HTTP/1.1 302 Found\r\nlocation: /\r\ncontent-length: 0\r\n\r\n"),
  (socket) => socket.write(`${HEAD}set-cookie: ${"a".repeat(60_000)}\r\ncontent-length: 0\r\n\r\n`),
];

const COUNT = 100;
let open = 0;

function watch(socket: Socket): void {
  open += 1;
  socket.on("error", () => {});
  socket.on("close", () => (open -= 1));
}

const selfSigned = newCertificate({ name: "hostile", hosts: ["127.0.0.1"] });
const urls: string[] = [];
for (let i = 0; i < COUNT; i++) {
  const behave = BEHAVIOURS[i % (BEHAVIOURS.length + 1)];
  const answer = (socket: Socket) => socket.on("error", () => {}).once("data", () => behave?.(socket));
  const isSecure = behave === undefined;
  const server = isSecure ? createTlsServer(selfSigned, answer) : createServer(answer);
  server.on("connection", watch);
  server.on("tlsClientError", () => {});
  await new Promise<void>((resolve) => {
    server.listen(0, "127.0.0.1", resolve);
  });
  const address = server.address();
  const port = typeof address === "object" && address !== null ? address.port : 0;
  urls.push(`${isSecure ? "https" : "http"}://127.0.0.1:${port}/`);
}
process.on("message", () => process.send?.({ open }));
process.on("disconnect", () => process.exit(0));
process.send?.({ urls });
