/** A target that speaks in raw bytes, so that it can say what no HTTP server would, and that counts its connections. */
import { once } from "node:events";
import { createServer, type Server, type Socket } from "node:net";
import type { TestContext } from "node:test";
import { createServer as createTlsServer, type TlsOptions } from "node:tls";
import { closeAttempts, within } from "./attempts.ts";

export interface RawTarget {
  readonly port: number;
  readonly url: string;
  /** Every connection that was ever made to it. */
  readonly connections: Socket[];
  /** The head of every request, in the order in which they came. */
  readonly requests: string[];
  /** Resolves when no connection is open; rejects when that takes too long. */
  allClosed(): Promise<void>;
}

/** Writes what it likes on the socket; called with the head of each request. */
export type Answer = (socket: Socket, head: string) => void;

export const OK = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";

export interface TargetOptions {
  readonly host?: string;
  readonly port?: number;
  readonly tls?: TlsOptions;
  /** False: what comes first is answered, whatever it is. */
  readonly isHttp?: boolean;
}

/** After the test, when its senders are closed, no connection may be left behind. */
export async function rawTarget(
  t: TestContext,
  answer: Answer,
  options: TargetOptions = {},
): Promise<RawTarget> {
  const { host = "127.0.0.1", port = 0, tls, isHttp = true } = options;
  const connections: Socket[] = [];
  const requests: string[] = [];
  const open = new Set<Socket>();
  let onEmpty: () => void = () => {};

  const count = (socket: Socket): void => {
    connections.push(socket);
    open.add(socket);
    socket.on("error", () => {});
    socket.on("close", () => {
      open.delete(socket);
      if (open.size === 0) onEmpty();
    });
  };
  const serve = (socket: Socket): void => {
    let received = "";
    socket.on("error", () => {});
    if (!isHttp) {
      socket.once("data", () => answer(socket, ""));
      return;
    }
    socket.on("data", (bytes) => {
      received += bytes.toString("latin1");
      // A body that comes in pieces of its own is passed over.
      if (!/^[A-Z]+ /.test(received)) received = "";
      const end = received.indexOf("\r\n\r\n");
      if (end === -1) return;
      const head = received.slice(0, end);
      received = "";
      requests.push(head);
      answer(socket, head);
    });
  };

  const allClosed = async (): Promise<void> => {
    if (open.size === 0) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    onEmpty = resolve;
    await within(5_000, promise);
  };

  const server: Server = tls === undefined ? createServer(serve) : createTlsServer(tls, serve);
  server.on("connection", count);
  server.on("tlsClientError", () => {});
  server.listen(port, host);
  await once(server, "listening");
  t.after(async () => {
    server.close();
    await closeAttempts(t);
    await allClosed().finally(() => {
      for (const socket of open) socket.destroy();
    });
  });
  const bound = server.address();
  const boundPort = typeof bound === "object" && bound !== null ? bound.port : 0;
  return {
    port: boundPort,
    url: `${tls === undefined ? "http" : "https"}://${host}:${boundPort}/`,
    connections,
    requests,
    allClosed,
  };
}
